"""Ctrl-C once there is something to keep."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


@contextmanager
def finishing() -> Iterator[None]:
    """What was measured is explained, stored and shown although Ctrl-C is pressed meanwhile; pressed again, it ends the verb."""
    if threading.current_thread() is not threading.main_thread():  # only there are signals handled
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def put_off(*_signal: object) -> None:
        signal.signal(signal.SIGINT, before)
        click.echo("what was measured is being kept and shown; Ctrl-C again ends this", err=True)

    signal.signal(signal.SIGINT, put_off)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
