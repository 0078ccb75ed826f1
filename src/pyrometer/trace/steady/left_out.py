"""What of a record is no part of the steady state, and what that took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pyrometer.record import Record, doc

Reason = Literal["first_call", "compilation", "first_steps", "in_flight_at_start", "in_flight_at_end"]


class LeftOut(Record, frozen=True, kw_only=True):
    """One thing that figures leave out. Times are on the clock of the file."""

    reason: Annotated[
        Reason,
        doc(
            "first_call and compilation: host time in which every device was idle is cut out; first_steps: all that belongs to "
            "them; in_flight_at_start and in_flight_at_end: the span is shorter there, since device work was not recorded"
        ),
    ]
    name: Annotated[str, doc("call, step or device work")]
    count: Annotated[int, doc("calls, steps, or launches that were waiting")] = 1
    start_ns: int
    end_ns: int
    span_ns: Annotated[int, doc("by how much the span is shorter")]
    longest_ns: Annotated[int, doc("of the calls or steps; of work in flight, launch to start")] = 0
    usual_ns: Annotated[int | None, doc("median of the other calls of this name, or of the other steps")] = (
        None
    )
    num_kernels: Annotated[int, doc("kernels that are left out with it")] = 0
    kernel_sum_ns: Annotated[int, doc("their durations")] = 0


def total_ns(left_out: Iterable[LeftOut]) -> int:
    """By how much the span is shorter.

    >>> total_ns([])
    0
    """
    return sum(entry.span_ns for entry in left_out)
