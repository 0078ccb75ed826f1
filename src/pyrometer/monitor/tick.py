"""What a monitor knows of one second of one process: the record that detectors read and exporters send.

Ticks are increments: counts and histograms are those of the second alone, so that a minute, an hour or a fleet is `merge_ticks`
of its ticks. A series of a metric with labels is written as Prometheus writes it: `detections{class="car"}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Protocol

from pyrometer.histogram import Histogram, merge
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc

CALL_EVENTS = frozenset({"sample", "slow", "error"})
"""Events that tell of one call; all others tell of a change."""


class Source(Record, frozen=True, kw_only=True):
    """Who is watched: the same in all ticks of a process."""

    model: str = ""
    version: str = ""
    device: str = ""
    host: str = ""
    pid: int = 0
    labels: Annotated[dict[str, str], doc("of the user, such as a vehicle or a route")] = {}


class Numerics(Record, frozen=True, kw_only=True):
    """What the sampled outputs of one function held."""

    num_checked: Annotated[int, doc("outputs that were looked at")] = 0
    num_nan: Annotated[int, doc("outputs with a NaN in them")] = 0
    num_infinite: Annotated[int, doc("outputs with an infinity in them")] = 0
    low: Annotated[float | None, doc("the least finite value seen")] = None
    high: Annotated[float | None, doc("the largest finite value seen")] = None
    values: Annotated[
        list[float], doc("some values of the outputs, evenly taken; for their distribution")
    ] = []


class Calls(Record, frozen=True, kw_only=True):
    """What happened to one watched function."""

    num_ended: Annotated[int, doc("calls that returned, those whose latency was dropped too")] = 0
    num_failed: Annotated[int, doc("calls that raised")] = 0
    errors: Annotated[dict[str, int], doc("calls that raised, per type of the exception")] = {}
    num_dropped: Annotated[int, doc("calls that returned, but whose latency found no room")] = 0
    in_flight: Annotated[int, doc("calls under way at the end of the second")] = 0
    units: Annotated[float, doc("frames, tokens or what a call is worth, of the calls that returned")] = 0.0
    latency_s: Annotated[Histogram, doc("of the calls that returned, on the host's clock")] = Histogram()
    device_s: Annotated[Histogram, doc("of sampled calls, between two events of the device")] = Histogram()
    first_item_s: Annotated[Histogram, doc("of generators: until the first item")] = Histogram()
    numerics: Numerics = Numerics()


class Event(Record, frozen=True, kw_only=True):
    """One call that is told in full: a sample, an error, a slow one; or a change, such as an alarm."""

    at_s: Annotated[Seconds, doc("Unix time")]
    event: Annotated[str, doc("sample, error, slow, or what else happened")]
    call: Annotated[str, doc("name of the watched function")] = ""
    latency_s: Seconds | None = None
    shape: Annotated[str, doc("of the tensors among the arguments: 8x3x224x224,8")] = ""
    batch: Annotated[int | None, doc("first dimension of the first tensor")] = None
    error: Annotated[str, doc("type of the exception")] = ""
    memory_bytes: Annotated[int | None, doc("allocated on the device")] = None
    trace_id: str = ""
    fields: Annotated[dict[str, str | float | int | bool], doc("what the user or a detector added")] = {}


class Tick(Record, frozen=True, kw_only=True):
    """One second of one process; the first one, and one after a pause, may be longer."""

    schema_version: int = 1
    source: Source = Source()
    sequence: Annotated[int, doc("1 for the first tick of a process; a gap says that ticks were lost")] = 0
    at_s: Annotated[Seconds, doc("Unix time of its end; may step back when the clock is set")] = 0.0
    span_s: Annotated[Seconds, doc("how long it covers, on a clock that never steps")] = 1.0
    calls: Annotated[dict[str, Calls], doc("per name of a watched function")] = {}
    counters: Annotated[dict[str, float], doc("growth of each series")] = {}
    gauges: Annotated[dict[str, float], doc("last value of each series")] = {}
    histograms: Annotated[dict[str, Histogram], doc("values of each series")] = {}
    events: Annotated[list[Event], doc("bounded; what found no room is counted in num_events_dropped")] = []
    num_events_dropped: int = 0
    num_faults: Annotated[int, doc("faults of the monitor itself and of callbacks that it called")] = 0
    alarms: Annotated[list[str], doc("alarms that are on")] = []


class Listener(Protocol):
    """What looks at each tick on the monitor's own thread: detectors, diagnosis, degradation.

    `pm.Monitor.add(listener)` adds one. What it raises is counted as a fault and ends nothing.
    """

    def samples(self, call: str, at_s: Seconds, latencies_s: Sequence[float], /) -> None:
        """Latencies of the calls of one function that returned since the last time, in order; every tenth of a second."""

    def tick(self, tick: Tick, /) -> Sequence[Event]:
        """One second is over; what it returns is logged with the next tick."""

    def alarms(self) -> Sequence[str]:
        """Names of what is alarming now."""


def merge_ticks(ticks: Iterable[Tick]) -> Tick:
    """One tick for a window, or for several processes: counts add up, histograms merge, gauges are the last ones."""
    several = list(ticks)
    if not several:
        return Tick(span_s=0.0)
    last = several[-1]
    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    for one in several:
        gauges |= one.gauges
        for series, growth in one.counters.items():
            counters[series] = counters.get(series, 0.0) + growth
    return Tick(
        source=last.source,
        sequence=last.sequence,
        at_s=last.at_s,
        span_s=sum(one.span_s for one in several),
        calls={name: merge_calls(found) for name, found in _by_key(one.calls for one in several).items()},
        counters=counters,
        gauges=gauges,
        histograms={name: merge(found) for name, found in _by_key(one.histograms for one in several).items()},
        num_events_dropped=sum(one.num_events_dropped for one in several),
        num_faults=sum(one.num_faults for one in several),
        alarms=last.alarms,
    )


def merge_calls(several: Sequence[Calls]) -> Calls:
    """Of one function, over time: what is in flight is that of the last."""
    errors: dict[str, int] = {}
    for one in several:
        for kind, count in one.errors.items():
            errors[kind] = errors.get(kind, 0) + count
    return Calls(
        num_ended=sum(one.num_ended for one in several),
        num_failed=sum(one.num_failed for one in several),
        errors=errors,
        num_dropped=sum(one.num_dropped for one in several),
        in_flight=several[-1].in_flight,
        units=sum(one.units for one in several),
        latency_s=merge(one.latency_s for one in several),
        device_s=merge(one.device_s for one in several),
        first_item_s=merge(one.first_item_s for one in several),
        numerics=_merge_numerics([one.numerics for one in several]),
    )


def _merge_numerics(several: Sequence[Numerics]) -> Numerics:
    lows = [one.low for one in several if one.low is not None]
    highs = [one.high for one in several if one.high is not None]
    return Numerics(
        num_checked=sum(one.num_checked for one in several),
        num_nan=sum(one.num_nan for one in several),
        num_infinite=sum(one.num_infinite for one in several),
        low=min(lows, default=None),
        high=max(highs, default=None),
    )


def _by_key(tables: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for table in tables:
        for key, value in table.items():
            found.setdefault(key, []).append(value)
    return found
