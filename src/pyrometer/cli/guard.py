"""`pyrometer guard`: did this commit make it worse?"""

from __future__ import annotations

from importlib import import_module

import click

VERBS = {
    "record": ("guard_history", "measure a commit against the one recorded before it"),
    "history": ("guard_history", "show trends and changes from commit to commit, and prove them"),
    "accept": ("guard_history", "accept a change, with a reason"),
    "prune": ("guard_history", "delete old records"),
    "export": ("guard_history", "write the history as CSV, JSON or HTML"),
}
"""Module and summary of each verb; a module is imported when one of its verbs is called."""


class GuardVerbs(click.Group):
    """Loads a verb's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every verb."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The click command of that name in its module."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"pyrometer.cli.{VERBS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, summary) for name, (_, summary) in VERBS.items()])


@click.group(cls=GuardVerbs)
def command() -> None:
    """Find out whether commits make a suite of benchmarks slower, larger or less exact."""
