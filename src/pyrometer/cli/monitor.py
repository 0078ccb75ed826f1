"""`pyrometer monitor`: what production says; one module per verb below it, loaded when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

VERBS = {
    "live": "show what processes do now, from the files of a monitor or a Redis of many",
    "dashboards": "write Grafana dashboards, Prometheus rules with their tests, and Alertmanager routes",
    "analyze": "read structured logs: trend and changes of latency, what it goes with, compilations, errors",
}


class SubVerbs(click.Group):
    """Verbs below a verb; loads the module of one only when it is called.

    Args:
        verbs: what each does; the click command `command` of the module `pyrometer.cli.<name of the group>_<verb>`.
    """

    def __init__(self, *args: Any, verbs: Mapping[str, str], **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every verb."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a verb; `None` where there is none of this name."""
        if cmd_name not in self.verbs:
            return None
        found: click.Command = import_module(f"pyrometer.cli.{self.name}_{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.verbs.items()))


@click.group(cls=SubVerbs, name="monitor", verbs=VERBS)
def command() -> None:
    """Watch programs in production, and look into what they logged."""
