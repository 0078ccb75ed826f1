"""A progress bar on stderr for anything that takes over two seconds, when someone is looking."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

SHOW_AFTER_S = 2.0


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None]]:
    """Yield a function to be told the share that is done and what is under way; the bar is cleared at the end."""
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
