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


def break_text(graph_break: Break) -> str:
    """A break as sentences name it."""
    what = " ".join(part for part in (graph_break.id, headline(graph_break.reason)) if part)
    follows = f", follows from {file_name(graph_break.chained_to)}" if graph_break.chained_to else ""
    return f"{place_text(graph_break.file, graph_break.line)} ({what}{follows})"


def recompile_text(recompile: Recompile) -> str:
    """A recompilation as sentences name it: the function, and what was different."""
    changed = [
        f"{changed_input.name}: {', '.join(changed_input.before)} → {changed_input.after}"
        if changed_input.before
        else f"{changed_input.name}: {changed_input.after}"
        for changed_input in recompile.changed_inputs
    ]
    guards = [headline(cause.guard) for cause in recompile.causes if cause.guard]
    why = "; ".join(changed or guards[:1]) or "no reason told"
    return f"{frame_text(recompile)} ({why})"


def listed(texts: Iterable[str], named: int = 5) -> str:
    """The first of some texts, and how many more there are.

    >>> listed(["a", "b", "c"], named=2)
    'a, b and 1 more'
    """
    given = list(texts)
    more = f" and {len(given) - named} more" if len(given) > named else ""
    return ", ".join(given[:named]) + more
