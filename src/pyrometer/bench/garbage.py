"""Collecting garbage again and again without walking through all that was there before.

A full collection visits every container of the process, and torch alone brings some 300,000: a tenth of a second each time. What
collects before each of several stages collects fully once, hides what is left from the collector, and then walks through what is new.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_hidden: list[int] = []
"""How many objects `hiding` has hidden; empty while it hides none."""


@contextmanager
def settled() -> Iterator[None]:
    """Collect all garbage, and let collections inside walk only through what comes; nothing that is timed belongs inside."""
    gc.collect()
    with hiding():
        yield


@contextmanager
def hiding() -> Iterator[None]:
    """Hide all objects of now from the garbage collector, and from scans of its heap; `in_sight` shows them meanwhile.

    Where the user has frozen objects himself nothing is hidden, and what he freezes inside stays so.
    """
    if gc.get_freeze_count():
        yield
        return
    _hide()
    try:
        yield
    finally:
        _show()


@contextmanager
def in_sight() -> Iterator[None]:
    """Let scans of the heap meet what `hiding` hides."""
    if not _show():
        yield
        return
    try:
        yield
    finally:
        _hide()


def _hide() -> None:
    gc.freeze()
    _hidden[:] = [gc.get_freeze_count()]


def _show() -> bool:
    """Undo `_hide`, unless somebody else has frozen more, or set all free."""
    ours = bool(_hidden) and 0 < gc.get_freeze_count() <= _hidden.pop()
    if ours:
        gc.unfreeze()
    return ours
