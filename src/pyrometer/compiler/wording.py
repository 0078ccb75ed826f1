"""How sentences name breaks, recompilations and frames."""

from __future__ import annotations

from collections.abc import Iterable

from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.recompiles.record import LimitReached, Recompile
from pyrometer.place import file_name, place_text


def frame_text(frame: Compilation | LimitReached | Recompile | SkippedFrame) -> str:
    """A function with the line that it begins at."""
    return f"{place_text(frame.file, frame.line)} {frame.function}"


def headline(text: str) -> str:
    """The first line of a text."""
    return text.strip().partition("\n")[0]


def break_text(found: Break) -> str:
    """A break as sentences name it."""
    what = " ".join(part for part in (found.id, headline(found.reason)) if part)
    follows = f", follows from {file_name(found.chained_to)}" if found.chained_to else ""
    return f"{place_text(found.file, found.line)} ({what}{follows})"


def recompile_text(found: Recompile) -> str:
    """A recompilation as sentences name it: the function, and what was different."""
    changed = [
        f"{one.name}: {', '.join(one.before)} → {one.after}" if one.before else f"{one.name}: {one.after}"
        for one in found.changed_inputs
    ]
    guards = [headline(cause.guard) for cause in found.causes if cause.guard]
    why = "; ".join(changed or guards[:1]) or "no reason told"
    return f"{frame_text(found)} ({why})"


def listed(texts: Iterable[str], named: int = 5) -> str:
    """The first of some texts, and how many more there are.

    >>> listed(["a", "b", "c"], named=2)
    'a, b and 1 more'
    """
    given = list(texts)
    more = f" and {len(given) - named} more" if len(given) > named else ""
    return ", ".join(given[:named]) + more
