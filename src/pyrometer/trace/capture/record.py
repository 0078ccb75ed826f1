"""What a capture was asked for, and what it cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pyrometer.errors import InputError
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
    step_untraced_s: Annotated[Seconds | None, doc("median step without the profiler, of the last 20")] = None
    step_traced_s: Annotated[Seconds | None, doc("median step under the profiler, of the last 20")] = None
    num_untraced: Annotated[int, doc("steps behind step_untraced_s")] = 0
    overhead_ratio: Annotated[Ratio | None, doc("step_traced_s over step_untraced_s")] = None
    overhead_low: Annotated[Ratio | None, doc("lower end; null with too few steps for an interval")] = None
    overhead_high: Annotated[Ratio | None, doc("upper end")] = None
    confidence: Annotated[float | None, doc("that the interval holds the ratio")] = None
    predicted_bytes: Annotated[Bytes | None, doc("size predicted from a single step, before")] = None
    raw_bytes: Annotated[Bytes, doc("size of the trace, not compressed")]
    file_bytes: Annotated[Bytes, doc("size of the file")]
    num_events: int
    path: Annotated[str | None, doc("null when the file was not kept")] = None
    notes: Annotated[list[str], doc("what is missing or unusual, and what to do about it")] = []


def require_count(name: str, number: Any, least: int) -> None:
    """Refuse what is no number of steps.

    Raises:
        InputError: it is not a whole number, or too small.
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise InputError(f"{name}: got {number!r}; it must be a whole number of at least {least}")


class OptionCost(NamedTuple):
    """What an option of a capture gives, and its price, measured alone by `benchmarks/capture_overhead.py` on one CPU thread.

    Each pair is of a CNN with 760 events and 33 ms of CPU time per step, and of a transformer with 4100 events and
    6 ms: the price is one per event, so that the share of it depends on how large the operators are.
    """

    name: str
    gives: str
    step_ratio: tuple[float, float]  # step under the profiler over step without
    size_ratio: tuple[float, float]  # file with the option over file without any


CAPTURE_OPTIONS: tuple[OptionCost, ...] = (
    OptionCost(
        "record_shapes", "shapes, and from them FLOP and bytes of operators", (1.04, 1.31), (1.6, 1.5)
    ),
    OptionCost(
        "with_stack", "files and lines of the user's code, and the Python call tree", (1.05, 1.42), (2.5, 1.7)
    ),
    OptionCost("profile_memory", "allocations, and memory over time", (1.03, 1.27), (1.9, 1.6)),
    OptionCost("with_flops", "nothing in the file beyond record_shapes", (1.06, 1.48), (1.6, 1.5)),
    OptionCost("with_modules", "time by module, under the names of the model", (1.04, 1.33), (1.05, 1.01)),
)
"""Every option with its price. With no option at all a step takes 1.02 and 1.25 times as long as without the profiler;
all of them together take 1.13 and 1.76 times as long as that, in files of 5.7 and 3.2 times the size."""
