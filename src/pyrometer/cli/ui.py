"""`pyrometer ui`: the store in a browser."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.saving import store_place
from pyrometer.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pyrometer.dashboard.server import Dashboard


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 picks a free one.")
@click.option(
    "--open/--no-open", "opens", default=None, help="Open a browser.  [default: where there is one]"
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Accept connections from other machines; whoever has the token gets in.",
)
@click.option("--monitor", metavar="SOURCE", help="Folder or redis:// that monitors write to.")
@click.option("--stream", metavar="NAME", help="Stream of that Redis.")
@store_place
def command(
    *,
    store_location: str,
    host: str,
    port: int,
    opens: bool | None,
    allow_remote: bool,
    monitor: str | None,
    stream: str | None,
) -> int:
    """Browse stored and running measurements, and what monitors tell; stop with Ctrl-C.

    The dashboard is read-only. Its address holds a token, which every request needs, and only this machine can connect.
    """
    from pyrometer.store.place import is_server, shown

    if not is_server(store_location) and Path(store_location).is_file():
        raise UsageError(f"--store {store_location}: is a file; name the folder of the stored runs")
    source = {key: given for key, given in (("monitor", monitor), ("stream", stream)) if given is not None}
    dashboard = _dashboard(store_location, host=host, port=port, allow_remote=allow_remote, **source)
    if allow_remote:
        click.echo(
            "warning: other machines can reach this; the token and all pages travel unencrypted", err=True
        )
    with _opening(dashboard.url) if _wanted(opens) else contextlib.nullcontext():
        dashboard.serve(on_ready=lambda: _ready(dashboard.url, shown(store_location)))
    return ExitCode.OK


def _dashboard(location: str, **options: Any) -> Dashboard:
    try:
        from pyrometer.dashboard.server import Dashboard
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in {"starlette", "uvicorn"}:
            raise
        raise UsageError(
            f"pyrometer ui needs {missing}, which is not installed; install it by pip install 'pyrometer[ui]'"
        ) from error
    return Dashboard(location, **options)


def _ready(url: str, place: str) -> None:
    click.echo(url)
    click.echo(f"serving {place}; Ctrl-C ends it", err=True)


def _wanted(opens: bool | None) -> bool:
    """Unless it was said: where somebody sits in front of a screen."""
    if opens is not None:
        return opens
    screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.stdout.isatty() and screen


@contextlib.contextmanager
def _opening(url: str) -> Iterator[None]:
    """Open the browser on a file that leads to the address: other users see command lines, and the token in them."""
    import webbrowser

    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
        page = Path(folder) / "open.html"
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}">', encoding="utf-8")
        webbrowser.open(page.as_uri())
        yield
