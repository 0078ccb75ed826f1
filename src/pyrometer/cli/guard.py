"""`pyrometer guard`: what a change makes worse; its verbs are modules `guard_*` beside this one."""

from __future__ import annotations

import importlib

import click

VERBS = {
    "check": "compare a change with its base, benchmark by benchmark",
    "blame": "name the hunks of a change that make a benchmark worse",
    "bisect": "find the first commit that made something worse",
}
"""Verbs of the guard, by the end of the name of their module."""


class GuardVerbs(click.Group):
    """Loads a verb's module only when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every verb, the most used first."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The click command `command` of the module `pyrometer.cli.guard_<verb>`."""
        if cmd_name not in VERBS:
            return None
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
