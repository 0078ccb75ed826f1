"""`pyrometer monitor dashboards`: what a fleet is watched with."""

from __future__ import annotations

from pathlib import Path

import click

from pyrometer.cli.parameters import DURATION, SHARE


@click.command("dashboards")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default="monitoring")
@click.option(
    "--availability",
    type=SHARE,
    default="99.9%",
    show_default=True,
    help="Share of calls that must not fail.",
)
@click.option("--latency", type=DURATION, help="What 99 of 100 calls must keep below, such as 50ms.")
@click.option("--webhook", metavar="URL", help="Where Alertmanager posts alerts.")
def command(folder: Path, *, availability: float, latency: float | None, webhook: str | None) -> None:
    """Write Grafana dashboards, rules of Prometheus with their tests, and routes of Alertmanager into FOLDER.

    `promtool test rules prometheus-rules-test.yml` tests the rules there.
    """
    from pyrometer.monitor.dashboards.objectives import Objectives
    from pyrometer.monitor.dashboards.write import write_dashboards

    given = {} if webhook is None else {"webhook": webhook}
    for path in write_dashboards(folder, Objectives(availability=availability, latency_s=latency, **given)):
        click.echo(path)
