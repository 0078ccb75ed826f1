"""What happened inside of what: the spans of a log as trees, in which nothing counts twice."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator

from pyrometer.compiler.costs.events import Lane, Span, read_flat_spans
from pyrometer.compiler.costs.metrics import BACKWARD, FORWARD, spans_of_metrics
from pyrometer.compiler.costs.phase_names import COMPILATIONS, WAITED_FOR
from pyrometer.compiler.log import CompileLog


def read_spans(log: CompileLog) -> list[Span]:
    """Everything that is timed, as trees; compilations of which there are no events stem from their metrics."""
    spans = read_flat_spans(log)
    timed = {(span.name, span.compile_id) for span in spans if span.name in COMPILATIONS}
    for entry in log.of(FORWARD, BACKWARD):
        untimed = spans_of_metrics(entry)
        if untimed and (untimed[0].name, untimed[0].compile_id) not in timed:
            spans += untimed
    lanes: dict[Lane, list[Span]] = defaultdict(list)
    for span in spans:
        lanes[span.lane].append(span)
    return sorted((root for lane in lanes.values() for root in nested(lane)), key=lambda span: span.start_ns)


def nested(spans: Iterable[Span]) -> list[Span]:
    """Put each span of a lane inside the shortest that holds it, and return the outermost.

    Spans that overlap without one holding the other (two threads whose events a file does not tell apart, a clock that was
    set) are cut: what is waited for begins when the earlier one ends, anything else ends with it. Spans that are left of
    a lane never overlap, so that their lengths add up to the time in which any of them was going on.
    """
    waiting = [(span.start_ns, -span.end_ns, number, span) for number, span in enumerate(spans)]
    heapq.heapify(waiting)
    outermost: list[Span] = []
    around: list[Span] = []
    while waiting:
        _, _, number, span = heapq.heappop(waiting)
        while around and around[-1].end_ns <= span.start_ns:
            around.pop()
        if around and around[-1].end_ns < span.end_ns:
            if span.name in WAITED_FOR:
                span.start_ns = around[-1].end_ns
                heapq.heappush(waiting, (span.start_ns, -span.end_ns, number, span))
                continue
            span.end_ns = around[-1].end_ns
        (around[-1].children if around else outermost).append(span)
        around.append(span)
    return outermost


def waited_for(spans: Iterable[Span]) -> list[Span]:
    """The outermost spans for which a program waits."""
    return [span for span in down_to(spans, WAITED_FOR) if span.name in WAITED_FOR]


def behind(spans: Iterable[Span]) -> list[Span]:
    """The outermost spans of threads that nobody waits for directly: the threads that compile."""
    trees = list(spans)
    callers = {span.lane for span in waited_for(trees)}
    return [span for span in trees if span.lane not in callers and span.name != "dynamo"]


def inside(spans: Iterable[Span]) -> Iterator[Span]:
    """All spans of some trees, each before those inside of it."""
    yield from down_to(spans, frozenset())


def down_to(spans: Iterable[Span], last: frozenset[str]) -> Iterator[Span]:
    """All spans of some trees down to the first of given names on each branch, these included."""
    left = list(spans)[::-1]
    while left:
        span = left.pop()
        yield span
        if span.name not in last:
            left += reversed(span.children)
