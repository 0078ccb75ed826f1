"""What one rank's trace says, in one record: the answers of all analyses, of long tables the first rows.

It is small whatever the size of the trace, so that ranks can be reported on in other processes and merged.
"""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc
from pyrometer.trace.health.issue import HealthIssue
from pyrometer.trace.info import Repair
from pyrometer.trace.records.breakdown import (
    EngineSteps,
    OverTime,
    Parts,
    Phases,
    StepBreakdown,
    StreamBreakdown,
)
from pyrometer.trace.records.device import CollectiveGroup, Copies, KernelSummary, KernelTotal, LaunchReport
from pyrometer.trace.records.gains import Bound, Bounds, CriticalPath, Recoverable
from pyrometer.trace.records.memory import Memory
from pyrometer.trace.records.rates import Ceiling, OperatorCounters, Utilisation
from pyrometer.trace.records.waiting import Idle, IdleGap, Synchronisation, SyncPoint
from pyrometer.trace.reporting.totals import (
    LineTotal,
    MatrixProduct,
    ModuleTotal,
    OpTotal,
    RoofPoint,
    Sequence,
    TreeNode,
)
from pyrometer.trace.steady.left_out import LeftOut


class RankReport(Record, frozen=True, kw_only=True):
    """Where one rank's time went, why, and how far that can be trusted. Times are on the clock of the file."""

    rank: int
    path: str
    devices: Annotated[list[str], doc("that did work, by name")] = []
    num_events: Annotated[int, doc("entries of traceEvents that were read, of every kind")]
    num_lost_events: Annotated[int, doc("entries that could not be read")] = 0
    repaired: list[Repair] = []
    confidence: Annotated[str, doc("high, medium or low: what health leaves of it")]
    health: Annotated[list[HealthIssue], doc("the gravest first")] = []
    origin_ns: Annotated[int, doc("start of the span")] = 0
    span_ns: Annotated[
        int,
        doc(
            "from the first start to the last end over operators, device work, waits for the loader, and their steps"
        ),
    ]
    recorded_span_ns: Annotated[int, doc("the span with what is left out of it")] = 0
    left_out: Annotated[
        list[LeftOut],
        doc(
            "cold start, and ends with work in flight: no part of span_ns and of what follows. Times of events before a call that was "
            "cut out are later by what was"
        ),
    ] = []
    breakdown_ns: Annotated[Parts, doc("where the span went; sums to span_ns")]
    over_time: Annotated[OverTime, doc("the breakdown, slice by slice")]
    steps: list[StepBreakdown] = []
    streams: list[StreamBreakdown] = []
    device_busy_ns: Annotated[int, doc("any kernel, copy or fill running")]
    num_kernels: int
    kernel_busy_ns: Annotated[int, doc("any kernel running, on any stream")]
    kernel_sum_ns: Annotated[int, doc("durations of all kernels")]
    num_orphans: Annotated[int, doc("device work whose launch is not in the trace")]
    communication_ns: Annotated[int, doc("communication on any stream")] = 0
    overlapped_communication_ns: Annotated[int, doc("of which hidden behind compute")] = 0
    idle_gaps: Annotated[list[IdleGap], doc("the longest")] = []
    idle: Idle
    sync_points: Annotated[list[SyncPoint], doc("the longest stall first")] = []
    synchronisation: Synchronisation
    top_ops: Annotated[list[OpTotal], doc("most device time first, then host time")] = []
    top_lines: Annotated[list[LineTotal], doc("lines of the user's program that cause the most work")] = []
    top_modules: Annotated[list[ModuleTotal], doc("in the order of their first calls")] = []
    serving: Annotated[
        list[EngineSteps], doc("steps of an inference engine, prefill and decode apart; empty for others")
    ] = []
    phases: Phases
    call_tree: Annotated[list[TreeNode], doc("merged by path; small nodes put together")] = []
    critical_path: CriticalPath
    bounds: Annotated[Bounds, doc("what would help most, resource by resource")] = Bounds()
    recoverable: Annotated[list[Recoverable], doc("largest predicted gains first, none counted twice")] = []
    top_kernels: list[KernelTotal] = []
    kernels: KernelSummary
    launches: LaunchReport
    copies: Copies
    memory: Annotated[Memory, doc("allocations; empty without profile_memory")]
    collectives: Annotated[list[CollectiveGroup], doc("most exposed first")] = []
    roofline: Annotated[list[RoofPoint], doc("most time first")] = []
    ceilings: Annotated[list[Ceiling], doc("what the roofline is under; empty where no peaks are known")] = []
    utilisation: Utilisation
    sequences: Annotated[
        list[Sequence],
        doc("work that follows each other again and again, and could be fused; largest gain first"),
    ] = []
    tensor_cores: Annotated[
        list[MatrixProduct], doc("most time first; empty without a device or shapes")
    ] = []
    hardware_counters: Annotated[
        list[OperatorCounters], doc("most work first; empty where CUPTI's range profiler wrote none")
    ] = []


class TraceVerdict(Record, frozen=True, kw_only=True):
    """What one rank's trace comes down to."""

    rank: int
    bound: Annotated[Bound, doc("what would help most, by replay; see `bounds`")]
    share: Annotated[
        float,
        doc(
            "of the span that it takes; of the host, copies, waits and balanced runs, that would go without; of a step where the "
            "share of data is known without the profiler"
        ),
    ]
    ratio: Annotated[Ratio, doc("new over old span, if all that bounds took no time, by replay")] = 1.0
    sentence: Annotated[str, doc("for people")]
    recoverable: Annotated[list[Recoverable], doc("the three largest predicted gains")] = []
