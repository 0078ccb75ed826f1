"""The garbage collector of Python, held for a while, and the heap below it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self


@contextmanager
def uncollected(*, stays: bool = False) -> Iterator[None]:
    """No garbage collection meanwhile: what makes much that stays would have it looked at again and again.

    Args:
        stays: afterwards only a full collection looks at what was made, as if it had been there for long.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if stays and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was_on:
            gc.enable()


M_ARENA_MAX = -8
"""Of glibc's `mallopt`."""


def one_heap() -> None:
    """Have all threads share one heap, so that each uses what another has freed: for a process that is ours alone.

    glibc gives every thread a heap of its own, which costs a tenth of the peak; other libraries have no such setting.
    """
    import ctypes  # takes longer to import than all else here

    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


class Settled:
    """What lives at the beginning is looked at by no collection until the end, as a context.

    A full collection walks through all that torch and a model keep, which takes a tenth of a second in which nothing is answered.
    Who has frozen objects before keeps them, and nothing is done here: Python tells only how many are frozen.
    """

    _is_ours = False

    def __enter__(self) -> Self:
        """Collect what is garbage now, and freeze the rest."""
        self._is_ours = not gc.get_freeze_count()
        self.renew()
        return self

    def renew(self) -> None:
        """Once more, after much was replaced: cycles among what is frozen would never be freed."""
        if self._is_ours:
            gc.unfreeze()
            gc.collect()
            gc.freeze()

    def __exit__(self, *_: object) -> None:
        """Have everything looked at again."""
        if self._is_ours:
            gc.unfreeze()
