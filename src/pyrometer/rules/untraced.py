"""What a thing takes of a step without the profiler, from what it took under it: at least, and at most.

Steps under a profiler are longer, and a trace does not say where the profiler's time went. Two ends are certain. If all of it
went into the rest of the step, the thing takes its traced time of a shorter step: no share is more than that. If all of it
went into the thing, the rest takes its traced time of a shorter step, and no share is less than what that leaves.

The profiler's price is one per call. Of long calls the first end is near the truth, and the traced share is the least. Short
calls are lengthened more than the rest, by about as much as they take themselves: of theirs half of the traced share is the
least, where no more is certain.
"""

from __future__ import annotations

from typing import NamedTuple

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio
from pyrometer.rules.rule import Case

MOST_PER_EVENT_S = 3e-6
"""Of the profiler for an entry of a trace, with stacks and shapes: of 60 programs it mostly took 0.4 to 1.5 µs."""


class Share(NamedTuple):
    """Of a step as it runs without the profiler."""

    least: Ratio
    most: Ratio

    def gain(self, method: str, *, best: Ratio = 1.0, worst: Ratio = 1.0) -> Gain:
        """What it brings if a part of this time goes: `best` of the most that it can be, `worst` of the least.

        >>> Share(0.5, 0.8).gain("removal", worst=0.5).ratio_high
        0.75
        """
        return Gain(
            ratio_low=max(0.0, 1 - self.most * best),
            ratio_high=min(1.0, 1 - self.least * worst),
            method=method,
        )


def untraced(case: Case, share: Ratio, *, short: bool = False, phase: str | None = None) -> Share:
    """The range of a share without the profiler.

    Args:
        case: with the trace; where the length of a step without the profiler is not known, the share is taken as it is.
        share: of the trace's span.
        short: the time is made of short calls, so that the profiler may have lengthened it more than the rest.
        phase: of the step in which all of it lies; it takes no more than that phase did without the profiler.
    """
    longer = stretch(case)
    most = min(1.0, share * longer, phase_share(case, phase))
    least = max(share / 2, 1 - (1 - share) * longer) if short else share
    return Share(least=min(least, most), most=most)


def stretch(case: Case) -> Ratio:
    """How much longer a step was under the profiler, at least 1: the fastest traced step over the measured one.

    The fastest, because other programs lengthen some steps, and all of a step alike; the lower end of the measured one,
    because a share of a step that may be shorter may be larger. The profiler took no more than its price for each entry of the trace:
    what else is between them, other programs took.
    """
    trace = case.trace
    without = _untraced_step_s(case)
    if trace is None or not trace.steps or not without:
        return 1.0
    fastest_s = min(step.end_ns - step.start_ns for step in trace.steps) * 1e-9
    profiler_s = MOST_PER_EVENT_S * trace.num_events / len(trace.steps)
    return max(1.0, min(fastest_s / without, fastest_s / max(fastest_s - profiler_s, 1e-9)))


def phase_share(case: Case, phase: str | None, *, unknown: Ratio = 1.0) -> Ratio:
    """The share of a step that a phase takes without the profiler; `unknown` where that was not measured."""
    phases = case.measurement.phases if case.measurement is not None else []
    return next((time.share for time in phases if time.name == phase), unknown)


def _untraced_step_s(case: Case) -> float | None:
    m = case.measurement
    if m is not None and m.complete and m.ci_low_s > 0:
        return m.ci_low_s
    return case.capture.step_untraced_s if case.capture is not None else None
