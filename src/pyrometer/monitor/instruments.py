"""Figures of the user's own, declared once: gauges, counters and histograms, with labels whose number of values is bounded.

What is recorded is one append to a bounded queue, and is added up on the monitor's thread.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from pyrometer.errors import InputError
from pyrometer.histogram import Histogram
from pyrometer.monitor.watching.intake import Count

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Folded = TypeVar("Folded")
OTHER = "other"
"""Stands for all values of a label beyond the most that are kept."""
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_LONGEST_LABEL = 128


def series_name(name: str, labels: Sequence[str], values: Sequence[str]) -> str:
    r"""A series as Prometheus writes it.

    >>> series_name("detections", ["class"], ['a "car"'])
    'detections{class="a \\"car\\""}'
    """
    if not labels:
        return name
    pairs = (f'{label}="{value.translate(_ESCAPES)}"' for label, value in zip(labels, values, strict=True))
    return f"{name}{{{','.join(pairs)}}}"


_PAIR = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def split_series(series: str) -> tuple[str, dict[str, str]]:
    r"""The name and the labels of a series.

    >>> split_series('detections{class="a \\"car\\"",route="7"}')
    ('detections', {'class': 'a "car"', 'route': '7'})
    """
    name, _, rest = series.partition("{")
    pairs = _PAIR.findall(rest)
    return name, {label: re.sub(r"\\.", lambda one: _UNESCAPED[one[0]], value) for label, value in pairs}


class Instrument(ABC, Generic[Folded]):
    """What the three kinds share: a queue that any thread appends to."""

    kind: Kind

    def __init__(
        self,
        name: str,
        description: str,
        labels: Sequence[str],
        *,
        most_series: int,
        capacity: int,
        ensure_running: Callable[[], None],
        fault: Callable[[BaseException], None],
    ) -> None:
        for one in (name, *labels):
            if not _NAME.fullmatch(one):
                raise InputError(f"{one!r} cannot name a metric or label; legal are letters, digits and _")
        self.name = name
        self.description = description
        self.labels = tuple(labels)
        self.capped = Count()
        self.dropped = Count()
        self._most_series = most_series
        self._capacity = capacity
        self._ensure_running = ensure_running
        self._fault = fault
        self._waiting: deque[tuple[float | list[float], tuple[object, ...]]] = deque()
        self._gathered: dict[str, list[float]] = {}
        self._series: dict[tuple[object, ...], str] = {}

    def _put(self, value: float | list[float], values: tuple[object, ...]) -> None:
        self._ensure_running()
        if len(values) != len(self.labels):
            declared = ", ".join(self.labels) or "none"
            self._refuse(f"got {len(values)} values of labels; it was declared with {declared}")
        elif len(self._waiting) < self._capacity:
            self._waiting.append((value, values))
        else:
            self.dropped.up()

    def switch_off(self) -> None:
        """Record nothing from now on."""
        self._put = _nothing  # type: ignore[assignment,method-assign]

    def _refuse(self, why: str) -> None:
        """Production goes on without a value that cannot be: it counts as a fault, which the log tells."""
        self._fault(InputError(f"{self.name}: {why}"))

    def gather(self) -> None:
        """Sort what waits by its series: ten times a second, since all of a second at once would hold up whoever needs Python's lock."""
        for _ in range(len(self._waiting)):
            value, values = self._waiting.popleft()
            kept = self._gathered.setdefault(self._series_of(values), [])
            if isinstance(value, list):
                kept += value
            else:
                kept.append(value)

    def _taken(self) -> dict[str, list[float]]:
        """Values per series since the last time, in order."""
        self.gather()
        found, self._gathered = self._gathered, {}
        return found

    def _series_of(self, values: tuple[object, ...]) -> str:
        known = self._series.get(values)
        if known is not None:
            return known
        if len(self._series) >= self._most_series:
            self.capped.up()
            return series_name(self.name, self.labels, [OTHER] * len(self.labels))
        texts = [str(value)[:_LONGEST_LABEL] for value in values]
        self._series[values] = series_name(self.name, self.labels, texts)
        return self._series[values]

    @abstractmethod
    def take(self) -> dict[str, Folded]:
        """What was recorded since the last time, per series."""

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self._waiting.clear()
        self._gathered.clear()


def _nothing(_value: float | list[float], _values: tuple[object, ...]) -> None:
    """Stands in for recording where the monitor is disabled."""


class Counter(Instrument[float]):
    """Counts what happens: detections, retries, cache misses."""

    kind = "counter"

    def add(self, amount: float = 1.0, *labels: object) -> None:
        """Count `amount` more; `labels` are the values of the declared labels, in order."""
        if amount >= 0:
            self._put(amount, labels)
        else:
            self._refuse(f"got {amount}; a counter grows: legal is 0 or more")

    def take(self) -> dict[str, float]:
        """Growth since the last time."""
        return {series: sum(values) for series, values in self._taken().items()}


class Gauge(Instrument[float]):
    """A value that goes up and down: queue length, temperature, share of false detections."""

    kind = "gauge"

    def set(self, value: float, *labels: object) -> None:
        """The value from now on."""
        self._put(float(value), labels)

    def take(self) -> dict[str, float]:
        """The last values."""
        return {series: values[-1] for series, values in self._taken().items()}


class HistogramInstrument(Instrument[Histogram]):
    """A distribution: decision time, control response, size of a batch; of values that are not negative."""

    kind = "histogram"

    def record(self, value: float, *labels: object) -> None:
        """One more value."""
        self._put(float(value), labels)

    def record_all(self, values: Iterable[float], *labels: object) -> None:
        """Several values that have the same labels, in one place of the queue."""
        self._put([*values], labels)

    def take(self) -> dict[str, Histogram]:
        """The values since the last time."""
        return {series: Histogram.of(values) for series, values in self._taken().items()}
