"""What many lines of a log say, as a record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pyrometer.document import Document
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc


class TrendPoint(Record, frozen=True, kw_only=True):
    """Latency in one stretch of time."""

    at: Annotated[str, doc("where the stretch begins, RFC 3339 in UTC")]
    at_s: Annotated[Seconds, doc("the same as Unix time")]
    num_requests: int
    num_errors: int
    level_s: Annotated[
        Seconds | None, doc("geometric mean: unlike a median it does not jump between two shapes")
    ]
    p50_s: Seconds | None
    p95_s: Seconds | None
    p99_s: Seconds | None


class Shift(Record, frozen=True, kw_only=True):
    """What else changed with a change point: the share of one value among requests."""

    feature: str
    value: str
    share_before: float
    share_after: float


class LatencyChange(Record, frozen=True, kw_only=True):
    """A time at which the level of latency changed and stayed."""

    at: Annotated[str, doc("RFC 3339 in UTC, to within the length of a stretch of the trend")]
    at_s: Seconds
    quantile: Annotated[str, doc("level (the geometric mean) or p99: which series changed")]
    before_s: Seconds
    after_s: Seconds
    ratio: Annotated[Ratio, doc("after / before")]
    together: Annotated[list[Shift], doc("what changed at the same time; an association, no proof")] = []


class ValueLatency(Record, frozen=True, kw_only=True):
    """Latency of the requests with one value of a feature."""

    value: str
    num_requests: int
    p50_s: Seconds
    p99_s: Seconds
    tail_lift: Annotated[
        float, doc("its share among the slowest 1 % of all, over its share among all requests")
    ]


class Correlation(Record, frozen=True, kw_only=True):
    """How latency goes with one feature of the requests."""

    feature: Annotated[str, doc("shape, batch, hour, version, device or call")]
    explained: Annotated[
        float, doc("share of the variance of log-latency between its values (epsilon squared)")
    ]
    alone: Annotated[
        float | None,
        doc("share that no other feature explains; null for the hour, and where it always goes with another"),
    ] = None
    rank: Annotated[float | None, doc("Spearman's correlation with latency, for numbers")] = None
    num_values: int
    values: Annotated[list[ValueLatency], doc("the most frequent, the slowest first")]


class Trigger(Record, frozen=True, kw_only=True):
    """What goes with recompilations or graph breaks."""

    event: Annotated[str, doc("recompile or graph_break")]
    pattern: Annotated[str, doc("such as: first request of a shape in a process")]
    num_events: Annotated[int, doc("seconds of a process with such an event that fit the pattern")]
    num_all: Annotated[int, doc("seconds of a process with such an event")]
    num_chances: Annotated[int, doc("seconds or lines that fit the pattern, with an event or without")]
    lift: Annotated[
        float | None, doc("rate of events with the pattern over the rate without; null without any")
    ]


class ErrorCluster(Record, frozen=True, kw_only=True):
    """Errors whose texts differ in figures and names alone."""

    template: str
    example: str
    num_errors: int
    first: str
    last: str
    mostly: Annotated[
        list[Shift], doc("values that are more frequent among them than among all requests")
    ] = []


class LogAnalysis(Document, frozen=True, kw_only=True):
    """`pyrometer monitor analyze LOGS --json`."""

    files: list[str]
    lines: Annotated[int, doc("lines that were read")]
    left_out: Annotated[dict[str, int], doc("lines that are none of a log, by what is wrong with them")] = {}
    num_requests: Annotated[
        int, doc("lines with a latency; errors and slow ones, which are all logged, apart")
    ]
    num_slow: Annotated[
        int, doc("lines of slow requests, logged beside the sample and not in its quantiles")
    ] = 0
    num_errors: int = 0
    begins: str | None = None
    ends: str | None = None
    span_s: Seconds
    p50_s: Seconds | None = None
    p95_s: Seconds | None = None
    p99_s: Seconds | None = None
    trend: list[TrendPoint] = []
    change_points: list[LatencyChange] = []
    correlations: list[Correlation] = []
    triggers: list[Trigger] = []
    clusters: list[ErrorCluster] = []
    notes: Annotated[list[str], doc("what limits the answer")] = []

    @property
    def target(self) -> str:
        """What was read."""
        return self.files[0] if len(self.files) == 1 else f"{len(self.files)} logs"


def stamp(at_s: Seconds) -> str:
    """A Unix time as lines of logs have it.

    >>> stamp(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
