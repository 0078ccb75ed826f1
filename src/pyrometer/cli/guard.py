"""`pyrometer guard`: what a change makes worse; its verbs are modules `guard_*` beside this one."""

from __future__ import annotations

import importlib

import click

VERBS = {
    "check": "compare a change with its base, benchmark by benchmark",
    "blame": "name the hunks of a change that make a benchmark worse",
    "bisect": "find the first commit that made something worse",
    "record": "measure a commit against the one recorded before it",
    "history": "show trends and changes from commit to commit, and prove them",
    "accept": "accept a change, with a reason",
    "prune": "delete old records",
    "export": "write the history as CSV, JSON or HTML",
}
"""Verbs of the guard, by the end of the name of their module."""

OF_HISTORY = frozenset({"record", "history", "accept", "prune", "export"})
"""Those that share the module of histories, each under its own name."""


class GuardVerbs(click.Group):
    """Loads a verb's module only when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every verb, the most used first."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The click command `command` of the module `pyrometer.cli.guard_<verb>`."""
        if cmd_name not in VERBS:
            return None
        if cmd_name in OF_HISTORY:
            of_history = importlib.import_module("pyrometer.cli.guard_history")
            shared: click.Command = getattr(of_history, cmd_name)
            return shared
        command: click.Command = importlib.import_module(f"pyrometer.cli.guard_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=GuardVerbs)
def command() -> None:
    """Say whether a change makes a program slower, larger or wrong, and why.

    Benchmarks are functions perf_* in files perf_*.py; pyrometer guard check --list names them.
    """
