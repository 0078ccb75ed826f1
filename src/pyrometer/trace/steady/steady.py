"""The steady state of a record: what figures about a program should be of, and what was left out to get there.

First calls are cut out of the time, then steps at the start that are outliers are left out, then the ends at which
work was in flight that was not recorded. What takes less than `WORTH` of the span stays. A record of fewer than
`FEWEST` operators and pieces of device work is nothing but a start, and stays as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyrometer.trace.kinds import DEVICE_WORK, Kind
from pyrometer.trace.steady.derived import between, from_step, without_stretches
from pyrometer.trace.steady.first_calls import first_calls
from pyrometer.trace.steady.first_steps import count_first_steps, step_lengths
from pyrometer.trace.steady.in_flight import in_flight_at_end, in_flight_at_start
from pyrometer.trace.steady.left_out import LeftOut, total_ns
from pyrometer.trace.trace import RankTrace, kept

WORTH = 0.01
"""Share of the span; less than that moves no conclusion."""

FEWEST = 10
"""Operators and pieces of device work that say something about a program."""


class Steady(NamedTuple):
    """What a record shows of the steady state."""

    trace: RankTrace
    left_out: tuple[LeftOut, ...]
    start_only: tuple[LeftOut, ...]  # cold start that was not left out, since nothing else is there


@kept
def steady(trace: RankTrace) -> Steady:
    """Leave out the cold start and the ends at which the record is not complete."""
    found, least = first_calls(trace), WORTH * trace.activity.span_ns
    entries = found.entries if total_ns(found.entries) >= least else []
    undecided = found.undecided if total_ns(found.undecided) >= least else []
    if trace.number_of(Kind.CPU_OP, *DEVICE_WORK) < FEWEST:
        return Steady(trace, (), (*entries, *undecided))
    warm, steps = _without_first_steps(without_stretches(trace, found.cut) if entries else trace)
    whole, ends = _complete(warm)
    return Steady(whole, (*entries, *steps, *ends), tuple(undecided))


def _without_first_steps(trace: RankTrace) -> tuple[RankTrace, list[LeftOut]]:
    number = count_first_steps(trace)
    if not number:
        return trace, []
    lengths = step_lengths(trace)
    later, earlier = from_step(trace, number)
    kernels = earlier.filter(earlier["kind"] == Kind.KERNEL.value)
    begin, low = trace.span[0], later.span[0]
    entry = LeftOut(
        reason="first_steps",
        name=trace.steps["name"][0],
        count=number,
        start_ns=begin,
        end_ns=low,
        span_ns=low - begin,
        longest_ns=int(lengths[:number].max()),
        usual_ns=int(np.median(lengths[number:])),
        num_kernels=kernels.height,
        kernel_sum_ns=int(kernels["dur_ns"].sum()),
    )
    return later, [entry]


def _complete(trace: RankTrace) -> tuple[RankTrace, list[LeftOut]]:
    least = WORTH * trace.activity.span_ns
    found = [in_flight_at_start(trace), in_flight_at_end(trace)]
    start, end = (entry if entry and entry.span_ns >= least else None for entry in found)
    if start is None and end is None:
        return trace, []
    low = start.end_ns if start else trace.span[0]
    high = end.start_ns if end else trace.span[1]
    return between(trace, low, high), [entry for entry in (start, end) if entry]
