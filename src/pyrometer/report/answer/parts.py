"""Parts that add up to what they are parts of, also as they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyrometer.quantity import Bytes, Seconds, byte_unit, significant, time_unit
from pyrometer.report.answer.short import Part, Whole

MOST = 6
"""Rows of a whole."""

LEAST = 0.005
"""Of a whole, below which a part is counted among the others."""

OTHERS = "others"


def of_time(shares: Sequence[tuple[str, float]], whole_s: Seconds, title: str) -> Whole | None:
    """A time divided by shares, in its unit."""
    scale, unit = time_unit(whole_s)
    return _divided(shares, whole_s / scale, unit, title)


def of_bytes(shares: Sequence[tuple[str, float]], whole: Bytes, title: str) -> Whole | None:
    """A number of bytes divided by shares, in its unit."""
    scale, unit = byte_unit(whole)
    return _divided(shares, whole / scale, unit, title)


def _divided(shares: Sequence[tuple[str, float]], whole: float, unit: str, title: str) -> Whole | None:
    kept = gathered(shares)
    if not kept or whole <= 0:
        return None
    figures = rounded([share for _, share in kept], significant(whole))
    parts = [Part(name, figure, share) for (name, share), figure in zip(kept, figures, strict=True)]
    return Whole(title, unit, [part for part in parts if float(part.figure)])


def gathered(shares: Sequence[tuple[str, float]], most: int = MOST) -> list[tuple[str, float]]:
    """The largest shares, largest first, scaled to add up to 1; what is small or beyond the most is one share.

    >>> gathered([("a", 0.002), ("b", 0.9), ("c", 0.098)])
    [('b', 0.9), ('c', 0.098), ('others', 0.002)]
    """
    total = sum(share for _, share in shares)
    if total <= 0:
        return []
    ordered = sorted(((name, share / total) for name, share in shares if share > 0), key=_order)
    small = sum(share < LEAST for _, share in ordered)
    fits = len(ordered) <= most and small <= 1
    if fits and not small:
        return ordered
    room = min(len(ordered) - small, most - 1)
    rest = sum(share for _, share in ordered[room:])
    return [*ordered[:room], (OTHERS, rest)]


def _order(part: tuple[str, float]) -> tuple[bool, float]:
    name, share = part
    return name.startswith("other "), -share  # what is left over stands behind what has a name


def rounded(shares: Sequence[float], whole: str) -> list[str]:
    """Parts of a figure as it is written, with its decimals, which add up to it, by largest remainder.

    >>> rounded([0.333, 0.333, 0.334], "10.0"), rounded([0.9996, 0.0004], "38.2")
    (['3.3', '3.3', '3.4'], ['38.2', '0.0'])
    """
    decimals = len(whole.partition(".")[2])
    units = round(float(whole) * 10**decimals)
    exact = [share * units for share in shares]
    cells = [math.floor(part) for part in exact]
    order = sorted(range(len(exact)), key=lambda i: cells[i] - exact[i])
    for i in order[: units - sum(cells)]:
        cells[i] += 1
    return [f"{cell / 10**decimals:.{decimals}f}" for cell in cells]
