"""How far a verb is: told to a process that draws it on stderr, and to the store."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pyrometer.bench.stage import Stage
from pyrometer.cli import drawing
from pyrometer.cli.running import announcement
from pyrometer.errors import PyrometerError
from pyrometer.settings import load_settings

LEAST_S = 0.2
"""Between two words on one stage."""

BEGAN_S = time.monotonic()
"""When the verb was loaded, which is before what it measures and computes with."""

STOP_S = 5.0
"""How long to wait for the bar to clear itself away."""

Told = Callable[[float, str], None]


@contextlib.contextmanager
def progress_bar() -> Iterator[Told]:
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
def _bar() -> Iterator[Told]:
    drawer = _drawer() if _wanted() else None
    if drawer is None:
        yield lambda _share, _what: None
        return
    try:
        yield _Telling(drawer)
    finally:
        with contextlib.suppress(OSError):
            drawer.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        try:
            drawer.wait(STOP_S)
        except subprocess.TimeoutExpired:
            drawer.kill()
            drawer.wait()


def _wanted() -> bool:
    try:
        return load_settings(os.environ, Path.cwd()).progress
    except PyrometerError:  # which the verb tells itself, as an error
        return False


def _drawer() -> subprocess.Popen[bytes] | None:
    """The process that draws; none where stderr is closed, or no file."""
    try:
        stderr = sys.stderr.fileno()
        style = "terminal" if os.isatty(stderr) else "lines"
        ago_s = time.monotonic() - BEGAN_S
        command = [sys.executable, "-I", "-S", drawing.__file__, f"{ago_s:.2f}", style]
        drawer = subprocess.Popen(  # noqa: S603 - this Python, and a file of ours
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr
        )
    except (OSError, AttributeError, ValueError):
        return None
    if drawer.stdin is not None:
        os.set_blocking(drawer.stdin.fileno(), False)
    return drawer


class _Telling:
    """Tells the process that draws; what it does not take is lost, since the next word says more."""

    def __init__(self, drawer: subprocess.Popen[bytes]) -> None:
        self._drawer = drawer
        self._what = ""
        self._told_s = -LEAST_S

    def __call__(self, share: float, what: str) -> None:
        now_s = time.monotonic()
        if (what == self._what and now_s - self._told_s < LEAST_S) or self._drawer.stdin is None:
            return
        self._what, self._told_s = str(what), now_s
        until, expected_s = getattr(what, "until", None), getattr(what, "expected_s", None)
        fields = (f"{share:.4f}", _number(until), _number(expected_s), " ".join(str(what).split()))
        with contextlib.suppress(OSError):
            os.write(self._drawer.stdin.fileno(), ("\t".join(fields) + "\n").encode("utf-8", "replace"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
