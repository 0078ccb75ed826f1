"""How far a verb is: a bar on stderr for anything that takes over two seconds, when someone is looking, and a word for the store."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from pyrometer.bench.stage import Stage
from pyrometer.cli.running import announcement

SHOW_AFTER_S = 2.0


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None]]:
    """Yield a function to be told the share that is done and what is under way; the bar is cleared at the end."""
    with _bar() as show:

        def told(share: float, what: str) -> None:
            show(share, what)
            _announce(share, what)

        yield told


def _announce(share: float, what: str) -> None:
    heard = announcement()
    if heard is not None and isinstance(what, Stage):
        heard.tell(share, str(what), num_samples=what.num_samples, step_s=what.step_s)
    elif heard is not None:
        heard.tell(share, what)


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[float, str], None]]:
    if not sys.stderr.isatty():
        yield lambda _share, _what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = bar.add_task("", total=1.0)
    started = time.monotonic()

    def told(share: float, what: str) -> None:
        if time.monotonic() - started < SHOW_AFTER_S:
            return
        bar.start()
        bar.update(task, completed=min(share, 1.0), description=what, refresh=True)

    try:
        yield told
    finally:
        bar.stop()
