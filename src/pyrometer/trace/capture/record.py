"""What a capture was asked for, and what it cost."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc

_OURS = {"with_modules"}  # the profiler's own option of this name knows only TorchScript modules


class CaptureOptions(Record, frozen=True, kw_only=True):
    """What a trace holds beside operators, kernels and copies; see `CAPTURE_OPTIONS` for what each costs."""

    record_shapes: Annotated[bool, doc("shapes, dtypes and strides of each operator's inputs")] = True
    with_stack: Annotated[bool, doc("every call of a Python function, and so files and lines")] = False
    profile_memory: Annotated[bool, doc("every allocation and free")] = False
    with_flops: Annotated[bool, doc("the profiler's own count of operations, which is not in the file")] = (
        False
    )
    with_modules: Annotated[bool, doc("a span around each call of an nn.Module")] = True

    @property
    def for_profiler(self) -> dict[str, bool]:
        """Those that the profiler is given."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name not in _OURS}


class Capture(Record, frozen=True, kw_only=True):
    """How a trace was recorded: with which options, at what cost, into how large a file."""

    source: Annotated[Literal["workload", "script", "process"], doc("what was traced")]
    options: CaptureOptions
    asked_steps: Annotated[int | None, doc("steps asked for; null when a time was")] = None
    num_steps: Annotated[int, doc("whole steps that the trace holds")]
    step_untraced_s: Annotated[Seconds | None, doc("median step without the profiler")] = None
    step_traced_s: Annotated[Seconds | None, doc("median step under the profiler")] = None
    num_untraced: Annotated[int, doc("steps behind step_untraced_s")] = 0
    overhead_ratio: Annotated[
        Ratio | None, doc("traced over untraced step: median of all pairs (Hodges-Lehmann on logarithms)")
    ] = None
    overhead_low: Annotated[Ratio | None, doc("lower end; null with too few steps for an interval")] = None
    overhead_high: Annotated[Ratio | None, doc("upper end")] = None
    confidence: Annotated[float | None, doc("that the interval holds the ratio")] = None
    predicted_bytes: Annotated[Bytes | None, doc("size predicted from a single step, before")] = None
    raw_bytes: Annotated[Bytes, doc("size of the trace, not compressed")]
    file_bytes: Annotated[Bytes, doc("size of the file")]
    num_events: int
    path: Annotated[str | None, doc("null when the file was not kept")] = None
    notes: Annotated[list[str], doc("what is missing or unusual, and what to do about it")] = []


class OptionCost(NamedTuple):
    """What a capture option gives, and its measured price; factors are on top of a bare trace."""

    name: str
    gives: str
    time_factor: tuple[float, float]  # step under the option over step under a bare profiler, lowest and highest seen
    size_factor: tuple[float, float]  # the same of the file


CAPTURE_OPTIONS: tuple[OptionCost, ...] = ()
"""Every option with its price."""
