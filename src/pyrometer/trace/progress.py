"""How far reading a trace and analysing it are, told to whoever listens: nobody does, unless a verb shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, str], None]
"""Is told the share that is done, from 0 to 1, and what is under way."""

_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(progress: Progress | None) -> Iterator[None]:
    """Let someone, or nobody, hear of what goes on inside.

    >>> with heard_by(lambda share, what: print(f"{share:.0%} {what}")):
    ...     tell(0.5, "reading")
    50% reading
    """
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def between(low: float, high: float) -> Iterator[None]:
    """What goes on inside is a part of the whole: its shares lie between two of the whole's.

    >>> with heard_by(lambda share, what: print(f"{share:.0%} {what}")), between(0.5, 1.0):
    ...     tell(0.5, "analysing")
    75% analysing
    """
    whole = _listener.get()
    with heard_by(None if whole is None else lambda share, what: whole(low + (high - low) * share, what)):
        yield


def tell(share: float, what: str) -> None:
    """Say how far it is."""
    progress = _listener.get()
    if progress is not None:
        progress(min(share, 1.0), what)
