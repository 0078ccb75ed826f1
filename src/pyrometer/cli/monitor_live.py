"""`pyrometer monitor live`: what processes do now, in a terminal."""

from __future__ import annotations

import time

import click

from pyrometer.cli.printing import print_view


@click.command("live")
@click.argument("source", default=".pyrometer/monitor")
@click.option("--stream", default="pyrometer:ticks", show_default=True, help="Stream of a Redis to read.")
@click.option("--once", is_flag=True, help="Print what is there, and end.")
def command(source: str, *, stream: str, once: bool) -> None:
    """Show rate, latency, errors and alarms of every watched function, as ticks come.

    SOURCE is the folder of a monitor's JSON lines, or the URL of a Redis that monitors send to. Ctrl-C ends it.
    """
    from pyrometer.monitor.live.fleet import Fleet
    from pyrometer.monitor.live.sources import open_source
    from pyrometer.monitor.live.view import view_of

    ticks, fleet = open_source(source, stream), Fleet()
    fleet.add(ticks.fresh())
    if once:
        print_view(view_of(fleet.rows(time.time())))
        return
    from rich.live import Live

    with Live(view_of(fleet.rows(time.time())), auto_refresh=False, screen=False) as live:
        while True:
            time.sleep(0.5)
            fleet.add(ticks.fresh())
            live.update(view_of(fleet.rows(time.time())), refresh=True)
