"""`pyrometer rollout advance`."""

from __future__ import annotations

import click

from pyrometer.cli.rolling import print_rollout, whoami
from pyrometer.cli.saving import store_place


@click.command(name="advance")
@click.argument("name")
@click.option("--reason", default="", help="Why; kept in the log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_place
def command(*, name: str, reason: str, as_json: bool, store_location: str) -> None:
    """Open the gate of the stage, or let it go on after a pause.

    A gate lets a stage be left once its tests say safe; it puts nothing in their place. Replicas whose stage is not proved go on after it, and the log says so.
    """
    from pyrometer.rollout.controller import command as give
    from pyrometer.rollout.ledger import open_ledger

    ledger = open_ledger(store_location, create=False)
    give(ledger, name, "approve", whoami(), reason=reason)
    print_rollout(ledger, name, as_json=as_json)
