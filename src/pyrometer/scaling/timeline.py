"""A step with its collectives on one timeline: what computing hides, and what stands in the open. Pure."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.quantity import Seconds
from pyrometer.scaling.record import CollectiveCall, Schedule

Cost = Callable[[CollectiveCall], Seconds]


def step_with(schedule: Schedule, compute_s: Seconds, cost: Cost) -> Seconds:
    """Length of a step.

    Args:
        schedule: what is issued when.
        compute_s: the step without any communication.
        cost: of one collective.
    """
    if not schedule.overlaps:  # on CPUs the messages take the time of the cores that compute
        return compute_s + sum(map(cost, schedule.calls))
    return (
        _gathered(schedule, compute_s, cost)
        if schedule.parallel == "fsdp"
        else _reduced(schedule, compute_s, cost)
    )


def _reduced(schedule: Schedule, compute_s: Seconds, cost: Cost) -> Seconds:
    """DDP: buckets go out one after the other as they fill; the optimizer waits for the last."""
    free_s = 0.0
    for call in schedule.calls:
        free_s = max(free_s, call.at * compute_s) + cost(call)
    backward_s = schedule.backward_ends * compute_s
    return max(backward_s, free_s) + compute_s - backward_s


def _gathered(schedule: Schedule, compute_s: Seconds, cost: Cost) -> Seconds:
    """FSDP2 on streams, the host far ahead: gathers run beside the computing before them, scatters are waited for at the end.

    In the forward pass a gather may begin with the segment of computing before its own, and its own waits for it; in the backward pass
    it is issued one segment ahead, and the segment after the next waits for it. All messages share one wire.
    """
    now_s = segment_began_s = wire_free_s = due_s = due_later_s = done = 0.0
    for call in [*schedule.calls, None]:
        until = schedule.backward_ends if call is None else call.at
        if until > done:
            segment_began_s = max(now_s, due_s)
            now_s = segment_began_s + (until - done) * compute_s
            due_s, due_later_s, done = due_later_s, 0.0, until
        if call is None:
            break
        is_gather, is_forward = call.operation == "all_gather", call.at < schedule.forward_ends
        begins_s = segment_began_s if is_gather and is_forward else now_s
        wire_free_s = max(wire_free_s, begins_s) + cost(call)
        if is_gather and is_forward:
            due_s = max(due_s, wire_free_s)
        elif is_gather:
            due_later_s = max(due_later_s, wire_free_s)
    return max(now_s, due_s, due_later_s, wire_free_s) + (1 - done) * compute_s
