"""How sentences name calls that ran eagerly in silence."""

from __future__ import annotations

from collections.abc import Iterable

from pyrometer.compiler.inspection.record import SilentEager
from pyrometer.place import place_text
from pyrometer.quantity import counted


def silent_texts(silent: Iterable[SilentEager]) -> list[str]:
    """Each function, and how often it ran eagerly.

    >>> silent_texts([SilentEager(function="forward", file="m.py", line=3, calls=9, failing=[])])
    ['m.py:3 forward (9 calls ran eagerly in silence)']
    """
    return [
        f"{place_text(one.file, one.line)} {one.function} ({counted(one.calls, 'call')} ran eagerly in silence)"
        for one in silent
    ]
