"""`pyrometer monitor`: what production says; one module per verb below it, loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click

VERBS = {
    "live": "show what processes do now, from the files of a monitor or a Redis of many",
    "dashboards": "write Grafana dashboards, Prometheus rules with their tests, and Alertmanager routes",
    "analyze": "read structured logs: trend and changes of latency, what it goes with, compilations, errors",
}
"""Each is the click command `command` of the module `pyrometer.cli.monitor_<verb>`."""


class MonitorVerbs(click.Group):
    """Loads a verb's module only when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every verb."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a verb; `None` where there is none of this name."""
        if cmd_name not in VERBS:
            return None
        found: click.Command = import_module(f"pyrometer.cli.monitor_{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=MonitorVerbs, name="monitor")
def command() -> None:
    """Watch programs in production, and look into what they logged."""
