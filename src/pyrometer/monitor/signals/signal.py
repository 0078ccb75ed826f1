"""What all signals have in common: gauges as they are, and counters that only grow, of which ticks tell the growth."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable


class Reading(NamedTuple):
    """Values of series: of gauges now, of counters since the process or the machine began."""

    gauges: dict[str, float]
    totals: dict[str, float]


@runtime_checkable
class Signal(Protocol):
    """Something to read at times."""

    every_ticks: int
    from_zero: bool
    """Whether its totals began at zero with this process, so that the first reading counts."""

    def read(self) -> Reading:
        """The values now; whatever it raises is counted as a fault."""


class Growth:
    """Turns totals into growth. The first reading of a series begins it unless it grew from zero; one that fell begins anew.

    >>> growth = Growth()
    >>> growth.since({"a": 5.0}), growth.since({"a": 7.0, "b": 1.0}), growth.since({"a": 1.0})
    ({}, {'a': 2.0}, {'a': 1.0})
    """

    def __init__(self, *, from_zero: bool = False) -> None:
        self._last: dict[str, float] = {}
        self._from_zero = from_zero

    def since(self, totals: dict[str, float]) -> dict[str, float]:
        """What each series has grown by since the last time; series that did not grow are left out."""
        last = {**dict.fromkeys(totals, 0.0), **self._last} if self._from_zero else self._last
        grown = {
            key: value - last[key] if value >= last[key] else value
            for key, value in totals.items()
            if key in last
        }
        self._last = last | totals
        return {key: value for key, value in grown.items() if value}
