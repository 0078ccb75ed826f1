"""`pyrometer rollout watch`: the controller."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from pyrometer.cli.saving import store_place
from pyrometer.errors import ExitCode, InputError, UsageError
from pyrometer.settings import parse_duration

if TYPE_CHECKING:
    from pyrometer.rollout.controller import Look
    from pyrometer.rollout.ledger import Ledger

TOKEN = "PYROMETER_ROLLOUT_TOKEN"  # noqa: S105 - the name of the variable


@click.command(name="watch")
@click.argument("name")
@click.option("--every", default="10s", show_default=True, metavar="DURATION", help="Time between two looks.")
@click.option("--once", is_flag=True, help="Look once, decide at most one thing, and end.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve /verdict, /gate and /rollback; 0 takes a free port.",
)
@click.option("--host", help="Address of --port; another than loopback needs a token.  [default: 127.0.0.1]")
@click.option(
    "--prometheus",
    "urls",
    multiple=True,
    metavar="URL",
    help="Count from the /metrics of an instance, whose series have a label version; repeatable.",
)
@store_place
def command(
    *,
    name: str,
    every: str,
    once: bool,
    port: int | None,
    host: str | None,
    urls: tuple[str, ...],
    store_location: str,
) -> int:
    """Judge what processes count, and move the rollout NAME, with all its levers, until it has ended.

    Any number of controllers may watch one rollout, and each may be killed at any time. Exits with 0 when it is promoted, 1 when it was
    taken back, and 3 when it is stopped before.
    """
    from pyrometer.rollout.controller import watch
    from pyrometer.rollout.ledger import open_ledger

    if host is not None and port is None:
        raise UsageError(f"--host {host}: is where verdicts are served; pass --port too")
    ledger, stop = open_ledger(store_location, create=False), threading.Event()
    names = _names(ledger, name)
    latest: dict[str, Look] = {}
    count = _counting(ledger, urls)

    def tell(look: Look) -> None:
        latest[look.state.plan.name] = look
        count(look)
        for one in look.decisions:
            click.echo(f"{look.state.plan.name}: {one.action}, share {100 * one.share:.3g} %: {one.reason}")

    with ExitStack() as serving:
        if port is not None:
            _serve(serving, ledger, names, latest, (host or "127.0.0.1", port))
        seen = watch(
            ledger,
            names,
            every_s=parse_duration(every),
            tell=tell,
            wait=lambda every_s: once or stop.wait(every_s),
        )
    states = [look.state.status for look in seen]
    if any(status in {"rolled back", "aborted"} for status in states):
        return ExitCode.FOUND
    return ExitCode.OK if all(status == "promoted" for status in states) else ExitCode.UNDECIDED


def _names(ledger: Ledger, name: str) -> list[str]:
    from pyrometer.rollout.controller import require

    found = [known for known in ledger.names() if known == name or known.startswith(f"{name}/")]
    if not found:
        require(ledger, name)
    return found


def _counting(ledger: Ledger, urls: tuple[str, ...]) -> Callable[[Look], None]:
    from pyrometer.rollout.prometheus import PrometheusSource

    if not urls:
        return lambda _look: None
    source = PrometheusSource(list(urls))

    def count(look: Look) -> None:
        try:
            source.report(ledger, look.state)
        except InputError as error:
            click.echo(f"note: {error}", err=True)

    return count


def _serve(
    serving: ExitStack, ledger: Ledger, names: list[str], latest: dict[str, Look], address: tuple[str, int]
) -> None:
    from pyrometer.listening import require_token, token_from
    from pyrometer.monitor.export.server import MetricsServer
    from pyrometer.rollout.controller import Look, judge_now, require
    from pyrometer.rollout.verdicts import verdict_pages

    host, port = address
    token = token_from(os.environ, TOKEN)
    require_token(host, token, TOKEN)
    for name in names:
        state = require(ledger, name)
        latest[name] = Look(state, judge_now(ledger, state)[0], [])
    try:
        server = MetricsServer(host, port, verdict_pages(latest), token=token)
    except OSError as error:
        raise InputError(
            f"{host}:{port}: {error.strerror}; pass an address of this machine and another --port, or 0 for a free one"
        ) from error
    serving.callback(server.close)
    click.echo(f"{server.url}/verdict", err=True)
