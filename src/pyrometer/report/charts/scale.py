"""Scales: where a value lies on an axis, which ticks the axis has, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyrometer.quantity import byte_unit, time_unit

Unit: TypeAlias = Callable[[float], tuple[float, str]]
"""The unit that suits a value: its size, and its name."""

SECONDS: Unit = time_unit
BYTES: Unit = byte_unit


def plain(value: float) -> tuple[float, str]:  # noqa: ARG001 - a Unit
    """The unit of counts and ratios.

    >>> plain(3.0)
    (1.0, '')
    """
    return 1.0, ""


def per_cent(value: float) -> tuple[float, str]:  # noqa: ARG001 - a Unit
    """The unit of shares.

    >>> per_cent(0.3)
    (0.01, '%')
    """
    return 0.01, "%"


@dataclass(frozen=True)
class Scale:
    """Maps values between `low` and `high` onto 0 to 1, linearly or by their logarithm.

    >>> Scale(10, 1000, log=True)(100)
    0.5
    """

    low: float
    high: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Position on the axis; values beyond its ends lie on its ends."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            return math.log(inside / self.low) / math.log(self.high / self.low)
        return (inside - self.low) / (self.high - self.low)

    def edges(self, count: int) -> list[float]:
        """Ends of `count` bins that look equally wide on this axis.

        >>> Scale(0, 1).edges(4)
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        if self.log:
            return [self.low * (self.high / self.low) ** (i / count) for i in range(count + 1)]
        return [self.low + (self.high - self.low) * i / count for i in range(count + 1)]


def fit(values: Sequence[float], *, pad: float = 0.04, log_above: float = math.inf) -> Scale:
    """A scale that holds all values with some air, logarithmic when the largest is over `log_above` times the smallest.

    >>> fit([1.0, 2.0], pad=0.5), fit([1.0, 100.0], pad=0, log_above=5).log
    (Scale(low=0.5, high=2.5, log=False), True)
    """
    low, high = min(values), max(values)
    if low > 0 and high / low > log_above:
        factor = (high / low) ** pad
        return Scale(low / factor, high * factor, log=True)
    # Values that differ by no more than rounding are one value: an axis between them would have no room for ticks.
    apart = high - low > 1e-9 * max(abs(low), abs(high))
    air = (high - low) * pad if apart else abs(high) * 0.05 or 1.0
    return Scale(max(low - air, 0.0) if low >= 0 else low - air, high + air)


def ticks(scale: Scale, unit: Unit, most: int = 6) -> list[tuple[float, str]]:
    """Round values on the axis, at most `most` of them, with their labels.

    >>> [label for _, label in ticks(Scale(0.0305, 0.0362), SECONDS, most=4)]
    ['32 ms', '34 ms', '36 ms']
    >>> [label for _, label in ticks(Scale(0.9, 1500, log=True), plain)]
    ['1', '10', '100', '1000']
    """
    if scale.log:
        values = _log_ticks(scale.low, scale.high, most)
        if len(values) >= 3:
            return [(value, _label(value, unit(value), None)) for value in values]
    size, name = unit(max(abs(scale.low), abs(scale.high)))
    step = _step((scale.high - scale.low) / size, most)
    first = math.ceil(scale.low / size / step - 1e-9)
    last = math.floor(scale.high / size / step + 1e-9)
    return [(i * step * size, _label(i * step * size, (size, name), step)) for i in range(first, last + 1)]


def _step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that gives at most `most` ticks."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if span / (power * factor) <= most - 1 + 1e-9)


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [factor * 10.0**exponent for exponent in exponents for factor in factors]
        inside = [value for value in values if low <= value <= high]
        if len(inside) <= most:
            return inside
    every = math.ceil(len(inside) / most)
    return inside[::every]


def _label(value: float, unit: tuple[float, str], step: float | None) -> str:
    size, name = unit
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step is not None else 0
    number = f"{value / size:.{decimals}f}" if step is not None else f"{value / size:.4g}"
    return f"{number} {name}".strip()
