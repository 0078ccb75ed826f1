"""Finding the steps of a script in what was logged, and what each was made of.

A step is, in this order of preference, what there are at least two of:

1. from the end of one optimizer step to the end of the next: with gradient accumulation it contains several batches,
   with optimizers that take turns the last one of the cycle closes it;
2. from asking the data loader for a batch to asking for the next;
3. a call of the outermost module, or of several that take turns: without what is done between the calls.

Validation, checkpoints and new epochs are not training steps. A step that contains more loader restarts or
evaluation calls than the median step does is not regular; it begins where the batch after them was asked for, and what was
before that is outside of all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pyrometer.workload.script.cycles import closings
from pyrometer.workload.script.events import Events, Integers
from pyrometer.workload.script.phases import PHASES, REST, PhaseLine, trace_phases
from pyrometer.workload.script.startup._pyrometer_inside import kinds

Mask: TypeAlias = npt.NDArray[np.bool_]
Source: TypeAlias = Literal["optimizer steps", "loader iterations", "module calls", "nothing"]
UNKNOWN = -1


@dataclass(frozen=True)
class Steps:
    """The steps of a script, as columns.

    Attributes:
        steps_from: what a step was taken to be.
        start_ns: when each began, on the clock of the events, `[n]`.
        duration_ns: how long each took, `[n]`.
        phase_ns: for each phase and `rest`, its share of the duration, `[n]`; they add up to the duration exactly.
        regular: false for steps with a loader restart or an evaluation in them, and for a last one that was cut off, `[n]`.
        resident_bytes: highest resident memory sampled during each; `UNKNOWN` where none was, `[n]`.
        allocated_bytes: the same of torch's CUDA allocator.
        collected_ns: time in which Python collected garbage, `[n]`.
        device_ns: device time from the end of the step before to the end of this one, or `UNKNOWN`, `[n]`.
    """

    steps_from: Source
    start_ns: Integers
    duration_ns: Integers
    phase_ns: dict[str, Integers]
    regular: Mask
    resident_bytes: Integers
    allocated_bytes: Integers
    collected_ns: Integers
    device_ns: Integers

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class _Spans:
    """Steps as positions of their first and last event in a line of phases."""

    first: Integers
    last: Integers
    regular: Mask


def find_steps(events: Events) -> Steps:
    """Find the steps in a log."""
    line = trace_phases(events)
    found: list[tuple[Source, _Spans]] = [
        ("optimizer steps", _optimizer_spans(line)),
        ("loader iterations", _loader_spans(line)),
        ("module calls", _module_spans(line)),
    ]
    for fewest in (2, 1):
        for source, spans in found:
            if len(spans.first) >= fewest:
                return _describe(events, line, source, spans)
    return _describe(events, line, "nothing", found[0][1])


def _describe(events: Events, line: PhaseLine, source: Source, spans: _Spans) -> Steps:
    start, end = line.events.time_ns[spans.first], line.events.time_ns[spans.last]
    spent = line.spent_ns[:, spans.last] - line.spent_ns[:, spans.first]
    phase_ns = dict(zip(PHASES, spent, strict=True))
    phase_ns[REST] = end - start - spent.sum(axis=0)
    device = _gather(events.of(kinds.DEVICE_NS), start, end, np.add)
    return Steps(
        steps_from=source,
        start_ns=start,
        duration_ns=end - start,
        phase_ns=phase_ns,
        regular=spans.regular,
        resident_bytes=_gather(events.of(kinds.RESIDENT_BYTES), start, end, np.maximum),
        allocated_bytes=_gather(events.of(kinds.ALLOCATED_BYTES), start, end, np.maximum),
        collected_ns=np.maximum(_gather(events.of(kinds.COLLECTED), start, end, np.add), 0),
        device_ns=np.where(spans.regular, device, UNKNOWN),
    )


def evaluation_ns(events: Events, steps: Steps) -> int:
    """Time that evaluations took between the first step and the last, where only some steps have one before them.

    From the end of a step to that of the next, beyond a regular step; the median of them, for those that an observer slowed.
    """
    if not steps.regular.any():
        return 0
    ends = steps.start_ns + steps.duration_ns
    forwards = events.of(kinds.FORWARD_BEGIN)
    evaluations = forwards.where(forwards.flags & kinds.EVALUATION != 0).time_ns
    counts = np.diff(np.searchsorted(evaluations, ends))
    with_one = counts > (np.median(counts) if len(counts) else 0)
    if not with_one.any():
        return 0
    more = np.diff(ends)[with_one] - np.median(steps.duration_ns[steps.regular])
    return max(0, round(float(np.median(more)) * int(with_one.sum())))


def _gather(samples: Events, start: Integers, end: Integers, combine: np.ufunc) -> Integers:
    """One figure per step from the samples after its start and up to its end."""
    step = np.searchsorted(end, samples.time_ns)
    inside = step < len(end)
    inside[inside] = samples.time_ns[inside] > start[step[inside]]
    gathered = np.zeros(len(end), dtype=np.int64)
    combine.at(gathered, step[inside], samples.value[inside])
    known = np.zeros(len(end), dtype=np.bool_)
    known[step[inside]] = True
    return np.where(known, gathered, UNKNOWN)


def _optimizer_spans(line: PhaseLine) -> _Spans:
    kind = line.events.kind
    ends = np.flatnonzero((kind == kinds.OPTIMIZER_END) & (line.depth == 0))
    last = ends[closings(line.events.value[ends])]
    # The first step has no end before it: it begins with the log.
    first = np.concatenate([[-1], last])[: len(last)]
    restarts, evaluations = _restarts(line), _evaluations(line)
    irregular = _more_than_usual(restarts, first + 1, last) | _more_than_usual(evaluations, first + 1, last)
    evaluates_always = len(last) > 0 and float(np.median(_count(evaluations, first + 1, last))) > 0
    breaks = restarts if evaluates_always else restarts | evaluations
    for step in np.flatnonzero(irregular):
        first[step] = _resume(line, breaks, int(first[step]), int(last[step]))
    return _Spans(np.maximum(first, 0), last, ~irregular)


def _resume(line: PhaseLine, breaks: Mask, first: int, last: int) -> int:
    """Where a step begins that was interrupted: at the fetch after the last break, else after the last evaluation."""
    kind = line.events.kind
    inside = np.arange(first + 1, last + 1)
    broken = inside[breaks[inside]]
    fetches = inside[kind[inside] == kinds.DATA_BEGIN]
    if not len(broken):
        return first
    # A first fetch is itself where the step begins.
    after = fetches[fetches >= broken[-1]]
    if len(after):
        return int(after[0])
    return int(broken[-1]) + 1 if not len(fetches) else first


def _loader_spans(line: PhaseLine) -> _Spans:
    kind, flags, value = line.events.kind, line.events.flags, line.events.value
    begins = np.flatnonzero(
        (kind[:-1] == kinds.DATA_BEGIN) & (kind[1:] == kinds.DATA_END) & (line.depth[:-1] == 1)
    )
    exhausted = (flags[begins + 1] & kinds.EXHAUSTED) != 0
    fetches = begins[~exhausted]
    closing = closings(value[fetches])
    opening = np.concatenate([[0], closing + 1]).astype(np.int64)
    first = fetches[opening[: len(closing)]]
    stops = np.union1d(fetches[opening[opening < len(fetches)]], begins[exhausted])
    # The end of the log stands where no fetch follows; before the first fetch of another iterator the loop was left.
    stops = np.append(stops, len(kind) - 1)
    last = stops[np.minimum(np.searchsorted(stops, first, side="right"), len(stops) - 1)]
    left = (kind[last] != kinds.DATA_BEGIN) | ((flags[last] & kinds.FIRST_FETCH) != 0)
    restarted = (kind[last] == kinds.DATA_BEGIN) & left & ~np.isin(last, begins[exhausted])
    last = np.where(restarted, last - 1, last)
    irregular = _more_than_usual(_restarts(line), first, last - 1) | _more_than_usual(
        _evaluations(line), first, last - 1
    )
    return _Spans(first, last, ~(irregular | left))


def _module_spans(line: PhaseLine) -> _Spans:
    kind = line.events.kind
    begins = np.flatnonzero(
        (kind[:-1] == kinds.FORWARD_BEGIN) & (kind[1:] == kinds.FORWARD_END) & (line.depth[:-1] == 1)
    )
    closing = closings(line.events.value[begins])
    opening = np.concatenate([[0], closing + 1]).astype(np.int64)[: len(closing)]
    return _Spans(begins[opening], begins[closing] + 1, np.ones(len(closing), dtype=np.bool_))


def _restarts(line: PhaseLine) -> Mask:
    kind, flags = line.events.kind, line.events.flags
    first = (kind == kinds.DATA_BEGIN) & ((flags & kinds.FIRST_FETCH) != 0)
    exhausted = (kind == kinds.DATA_END) & ((flags & kinds.EXHAUSTED) != 0)
    restarts: Mask = first | exhausted
    return restarts


def _evaluations(line: PhaseLine) -> Mask:
    evaluations: Mask = (line.events.kind == kinds.FORWARD_BEGIN) & (
        (line.events.flags & kinds.EVALUATION) != 0
    )
    return evaluations


def _count(marked: Mask, first: Integers, last: Integers) -> Integers:
    """How many marked events there are from each first to each last one, both included."""
    before = np.concatenate([[0], np.cumsum(marked)])
    counts: Integers = before[last + 1] - before[first]
    return counts


def _more_than_usual(marked: Mask, first: Integers, last: Integers) -> Mask:
    counts = _count(marked, first, last)
    found: Mask = counts > np.median(counts) if len(counts) else np.zeros(0, dtype=np.bool_)
    return found
