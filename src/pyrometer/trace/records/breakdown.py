"""Where the time of one rank goes: by part, step, stream, slice and phase."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.record import Record, doc


class Distribution(Record, frozen=True, kw_only=True):
    """Of durations or delays; quantiles are observed values (nearest rank)."""

    count: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p25_ns: int
    median_ns: int
    p75_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int


class Parts(Record, frozen=True, kw_only=True):
    """Nanoseconds per part; they sum to the length of what is broken down."""

    compute: Annotated[int, doc("kernels that are not communication")] = 0
    exposed_comm: Annotated[int, doc("communication that nothing hid")] = 0
    exposed_memcpy: Annotated[int, doc("copies with no kernel beside them")] = 0
    memset: Annotated[int, doc("fills with no kernel or copy beside them")] = 0
    sync: Annotated[int, doc("devices idle, the host in a call that waits for them")] = 0
    runtime: Annotated[int, doc("devices idle, the host in another runtime or driver call")] = 0
    data: Annotated[int, doc("devices idle, the host waits for the data loader")] = 0
    host: Annotated[int, doc("devices idle, the host in an operator")] = 0
    other: Annotated[int, doc("devices idle, the host in a Python function")] = 0
    idle: Annotated[int, doc("nothing was recorded")] = 0

    @property
    def total_ns(self) -> int:
        """Sum of all parts."""
        return sum(getattr(self, name) for name in self.__struct_fields__)


class StepBreakdown(Record, frozen=True, kw_only=True):
    """One step; its parts sum to its own length."""

    name: str
    start_ns: int
    end_ns: int
    parts: Parts


class StreamBreakdown(Record, frozen=True, kw_only=True):
    """One stream over the span of the trace: only parts on the device, and `idle` for all the rest."""

    device: int
    stream: int
    parts: Parts


class Breakdown(Record, frozen=True, kw_only=True):
    """Where one rank's time went."""

    span_ns: Annotated[
        int,
        doc(
            "from the first start to the last end over operators, device work, waits for the loader, and their steps"
        ),
    ]
    start_ns: Annotated[int, doc("on the clock of the file")]
    end_ns: int
    parts: Annotated[Parts, doc("sum to span_ns")]
    device_busy_ns: Annotated[int, doc("any device, any stream: kernels, copies and fills")]
    kernel_busy_ns: Annotated[int, doc("any kernel on any stream")]
    kernel_sum_ns: Annotated[int, doc("durations of all kernels; above kernel_busy_ns where they overlap")]
    num_kernels: int
    num_orphans: Annotated[int, doc("device work whose launch is not in the trace")]
    communication_ns: Annotated[int, doc("communication on any stream")]
    overlapped_communication_ns: Annotated[int, doc("of which hidden behind compute")]
    by_step: list[StepBreakdown] = []
    by_stream: list[StreamBreakdown] = []


class OverTime(Record, frozen=True, kw_only=True):
    """The span in slices; over all slices each part sums to that of the whole breakdown."""

    edges_ns: Annotated[
        list[int], doc("ends of the slices on the clock of the file: one more than there are slices")
    ]
    parts: Annotated[dict[str, list[int]], doc("ns of each part per slice, of parts that occur")]


Source = Literal["phase", "annotation", "optimizer", "loader", "autograd", "module", "copy", "order"]


class Phase(Record, frozen=True, kw_only=True):
    """One phase, over the whole trace."""

    name: str
    source: Annotated[
        Source,
        doc(
            "what says so: phase (our own annotation), annotation, optimizer, loader, autograd, module, copy, order"
        ),
    ]
    host_ns: Annotated[int, doc("any thread in it")]
    device_ns: Annotated[int, doc("durations of the kernels, copies and fills that it launched")]
    device_busy_ns: Annotated[int, doc("any of them running")]
    num_kernels: int
    host_share: Annotated[float, doc("of the span of the trace, how much lies in it")]


class StepPhases(Record, frozen=True, kw_only=True):
    """One step: time per phase. Device work counts in the step that launched it."""

    name: str
    dur_ns: int
    host_ns: Annotated[dict[str, int], doc("by phase; wall time within the step")] = {}
    device_ns: Annotated[dict[str, int], doc("by phase; sum of durations")] = {}
    other_ns: Annotated[int, doc("within the step, no thread in any phase")] = 0


class Phases(Record, frozen=True, kw_only=True):
    """Phases of one rank, in the order in which they first occur."""

    annotated: Annotated[bool, doc("by phase: annotations; otherwise derived from what else the trace holds")]
    phases: list[Phase] = []
    steps: list[StepPhases] = []
    other_ns: Annotated[int, doc("within the span, no thread in any phase")] = 0
    other_device_ns: Annotated[int, doc("device work that was launched outside of all phases")] = 0


EngineKind = Literal["prefill", "decode", "mixed", "unknown"]


class EngineSteps(Record, frozen=True, kw_only=True):
    """All steps of one kind."""

    kind: Annotated[EngineKind, doc("prefill, decode, mixed, or unknown where the annotation does not say")]
    num_steps: int
    requests: Annotated[int, doc("served, summed over the steps")]
    tokens: Annotated[int, doc("new ones: of prompts in a prefill, generated in a decode")]
    total_ns: int
    step: Annotated[Distribution | None, doc("length of a step")] = None
    tokens_per_s: Annotated[float | None, doc("new tokens over total_ns")] = None
    device_ns: Annotated[int, doc("durations of the work that the steps launched")] = 0
    num_work: Annotated[int, doc("kernels, copies and fills")] = 0
