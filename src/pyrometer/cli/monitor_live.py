"""`pyrometer monitor live`: what processes do now, in a terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pyrometer.cli.printing import print_view
from pyrometer.record import to_json
from pyrometer.redaction import redacted

if TYPE_CHECKING:
    from pyrometer.monitor.live.record import LiveDocument
    from pyrometer.monitor.live.watch import LiveWatch

EVERY_S = 0.5


@click.command("live")
@click.argument("source", default=".pyrometer/monitor")
@click.option("--stream", default="pyrometer:ticks", show_default=True, help="Stream of a Redis to read.")
@click.option("--once", is_flag=True, help="Print what is there, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON each time that ticks have come.")
def command(source: str, *, stream: str, once: bool, as_json: bool) -> None:
    """Show rate, latency, errors and alarms of every watched function, as ticks come.

    SOURCE is the folder of a monitor's JSON lines, or the URL of a Redis that monitors send to. Ctrl-C ends it;
    `pyrometer ui --monitor SOURCE` shows the same in a browser.
    """
    from pyrometer.monitor.live.sources import open_source
    from pyrometer.monitor.live.view import view_of
    from pyrometer.monitor.live.watch import LiveWatch

    looks = _looks(LiveWatch(open_source(source, stream)), once=once, silently=as_json)
    if as_json:
        for now in looks:
            click.echo(to_json(redacted(now)))
    elif once:
        print_view(view_of(next(looks)))
    else:
        from rich.live import Live

        with Live(auto_refresh=False, screen=False) as live:
            for now in looks:
                live.update(view_of(now), refresh=True)


def _looks(watch: LiveWatch, *, once: bool, silently: bool) -> Iterator[LiveDocument]:
    """Now, and then again and again: silently only when ticks have come."""
    from pyrometer.monitor.live.watch import last_moment_s

    after_s, told = -math.inf, -1
    while True:
        now = watch.look(after_s=after_s)
        if not silently or told != watch.num_ticks:
            told, after_s = watch.num_ticks, last_moment_s(now, after_s)
            yield now
        if once:
            return
        time.sleep(EVERY_S)
