"""Everything since a process began, as Prometheus wants it: counters and histograms that only grow, and the last gauges.

Totals of several processes add up. Those of a process that ended stay in the sum, so that no rate ever falls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import structs

from pyrometer.histogram import Histogram, merge
from pyrometer.monitor.instruments import series_name
from pyrometer.monitor.tick import Calls, Source, Tick
from pyrometer.record import Record, doc

MOST_ERROR_KINDS = 64
QUANTILES = (0.5, 0.95, 0.99)


class Totals(Record, frozen=True, kw_only=True):
    """The series of one process, or of several."""

    source: Source = Source()
    at_s: Annotated[float, doc("Unix time of the last tick")] = 0.0
    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    histograms: dict[str, Histogram] = {}


class RunningTotals:
    """Adds up the ticks of one process."""

    def __init__(self) -> None:
        self._counters: dict[str, float] = {}
        self._gauges: dict[str, float] = {}
        self._histograms: dict[str, Histogram] = {}
        self._last = Tick()

    def add(self, tick: Tick) -> None:
        """One more tick."""
        for name, calls in tick.calls.items():
            self._add_calls(name, calls)
        for series, growth in tick.counters.items():
            self._count(series, growth)
        self._count("monitor_faults", tick.num_faults)
        self._count("monitor_events_dropped", tick.num_events_dropped)
        self._gauges |= tick.gauges
        self._gauges["monitor_alarms"] = float(len(tick.alarms))
        for series, found in tick.histograms.items():
            self._merge(series, found)
        self._last = tick

    def add_dropped(self, num_ticks: int) -> None:
        """Ticks that exporters have lost so far."""
        self._counters["monitor_ticks_dropped"] = float(num_ticks)

    def now(self) -> Totals:
        """The totals up to the last tick."""
        return Totals(
            source=self._last.source,
            at_s=self._last.at_s,
            counters=dict(self._counters),
            gauges={"up": 1.0, **self._gauges},
            histograms=dict(self._histograms),
        )

    def _add_calls(self, name: str, calls: Calls) -> None:
        def called(metric: str) -> str:
            return series_name(metric, ["call"], [name])

        self._count(called("requests"), calls.num_ended + calls.num_failed)
        self._count(called("units"), calls.units)
        self._count(called("samples_dropped"), calls.num_dropped)
        for kind, count in calls.errors.items():
            self._count(self._error_series(name, kind), count)
        self._gauges[called("requests_in_flight")] = float(calls.in_flight)
        self._merge(called("request_latency_seconds"), calls.latency_s)
        if calls.device_s.count:
            self._merge(called("request_device_seconds"), calls.device_s)
        if calls.first_item_s.count:
            self._merge(called("request_first_item_seconds"), calls.first_item_s)
        seen = calls.numerics
        if seen.num_checked:
            self._count(called("outputs_checked"), seen.num_checked)
            self._count(called("outputs_with_nan"), seen.num_nan)
            self._count(called("outputs_with_infinity"), seen.num_infinite)
        if seen.low is not None and seen.high is not None:
            self._gauges[called("output_least")] = seen.low
            self._gauges[called("output_largest")] = seen.high

    def _error_series(self, name: str, kind: str) -> str:
        series = series_name("request_errors", ["call", "type"], [name, kind])
        if (
            series in self._counters
            or sum(one.startswith("request_errors{") for one in self._counters) < MOST_ERROR_KINDS
        ):
            return series
        return series_name("request_errors", ["call", "type"], [name, "other"])

    def _count(self, series: str, growth: float) -> None:
        self._counters[series] = self._counters.get(series, 0.0) + growth

    def _merge(self, series: str, found: Histogram) -> None:
        known = self._histograms.get(series)
        self._histograms[series] = found if known is None else merge((known, found))


def with_quantiles(totals: Totals, minute: Tick) -> Totals:
    """The same with quantiles of the last minute, more exact than those from the buckets of Prometheus."""
    gauges = dict(totals.gauges)
    for name, calls in minute.calls.items():
        if calls.latency_s.count:
            for share in QUANTILES:
                series = series_name(
                    "request_latency_minute_seconds", ["call", "quantile"], [name, str(share)]
                )
                gauges[series] = calls.latency_s.quantile(share)
    return structs.replace(totals, gauges=gauges)


def add_up(several: Iterable[Totals], ended: Totals | None = None) -> Totals:
    """The totals of living processes, and of those that ended; gauges carry the number of their process."""
    living = list(several)
    parts = living if ended is None else [*living, ended]
    counters: dict[str, float] = {}
    histograms: dict[str, list[Histogram]] = {}
    gauges: dict[str, float] = {}
    for part in parts:
        for series, value in part.counters.items():
            counters[series] = counters.get(series, 0.0) + value
        for series, found in part.histograms.items():
            histograms.setdefault(series, []).append(found)
    for part in living:
        for series, value in part.gauges.items():
            gauges[with_label(series, "process", str(part.source.pid))] = value
    return Totals(
        source=living[0].source if living else Source(),
        at_s=max((part.at_s for part in living), default=0.0),
        counters=counters,
        gauges=gauges,
        histograms={series: merge(found) for series, found in histograms.items()},
    )


def with_label(series: str, label: str, value: str) -> str:
    """A series with one more label.

    >>> with_label("queue", "process", "7"), with_label('queue{route="a"}', "process", "7")
    ('queue{process="7"}', 'queue{route="a",process="7"}')
    """
    name, brace, rest = series.partition("{")
    pair = series_name("", [label], [value])[1:-1]
    return f"{name}{{{rest[:-1]},{pair}}}" if brace else f"{name}{{{pair}}}"
