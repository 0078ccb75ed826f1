"""`pyrometer guard`: what a change makes worse; its verbs are modules `guard_*` beside this one."""

from __future__ import annotations

import importlib

import click

from pyrometer.cli.monitor import SubVerbs

VERBS = {
    "check": "compare a change with its base, benchmark by benchmark",
    "blame": "name the hunks of a change that make a benchmark worse",
    "bisect": "find the first commit that made something worse",
    "record": "measure a commit against the one recorded before it",
    "history": "show trends and changes from commit to commit, and prove them",
    "accept": "accept a change, with a reason",
    "prune": "delete old records",
    "export": "write the history for other tools, as CSV, JSON or HTML",
}
OF_HISTORY = frozenset({"record", "history", "accept", "prune", "export"})
"""Those that share the module of histories, each under its own name."""


class GuardVerbs(SubVerbs):
    """Finds the verbs of histories in their module."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb; `None` where there is none of this name."""
        if cmd_name not in OF_HISTORY:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(importlib.import_module("pyrometer.cli.guard_history"), cmd_name)
        return found


@click.group(cls=GuardVerbs, name="guard", verbs=VERBS)
def command() -> None:
    """Say whether a change makes a program slower, larger or wrong, and why.

    Benchmarks are functions perf_* in files perf_*.py; pyrometer guard check --list names them.
    """
