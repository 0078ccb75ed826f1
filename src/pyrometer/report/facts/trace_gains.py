"""Predicted gains in words: what the run would be if something were faster."""

from __future__ import annotations

from pyrometer.quantity import format_ratio, format_seconds
from pyrometer.trace.records.gains import Change, WhatIf


def headline(what_if: WhatIf) -> str:
    """What the changes would bring."""
    said = " and ".join(change(one) for one in what_if.changes) or "nothing changed"
    if not what_if.touched_ns:
        return f"{said}: no gain, nothing in the trace is shortened by it"
    if not what_if.gain_ns:
        return f"{said}: no gain, all of it is hidden behind other work"
    ratio = format_ratio(what_if.ratio, what_if.ratio_low, what_if.ratio_high)
    return f"{said}: {ratio}, {format_seconds(what_if.gain_ns * 1e-9)} less"


def subtitle(what_if: WhatIf) -> str:
    """From where to where."""
    before, after = (format_seconds(value * 1e-9) for value in (what_if.span_ns, what_if.new_span_ns))
    return f"{before} → {after} · {format_seconds(what_if.touched_ns * 1e-9)} of recorded time made shorter"


def change(one: Change) -> str:
    """A change in words.

    >>> change(Change(kind="kernel", pattern="gemm", speedup=2.0)), change(Change(kind="data"))
    ('kernel gemm 2× faster', 'data for free')
    """
    what = " ".join(part for part in (one.kind, one.name or one.pattern) if part)
    return f"{what} for free" if one.speedup is None else f"{what} {one.speedup:g}× faster"
