"""`pyrometer rollout`: a new version is let in by evidence; one module per verb below it, loaded when it is called."""

from __future__ import annotations

import click

from pyrometer.cli.monitor import SubVerbs

VERBS = {
    "start": "begin a rollout: its versions, stages and thresholds",
    "status": "show where it stands, what the tests say, and what was decided",
    "watch": "judge what is counted, and move it on or back; any number of these may run",
    "advance": "open the gate of its stage, or let it go on after a pause",
    "pause": "hold its share; harm still takes it back",
    "abort": "take the new version back",
}


@click.group(cls=SubVerbs, name="rollout", verbs=VERBS)
def command() -> None:
    """Roll a new version out by stages, and back where it does harm."""
