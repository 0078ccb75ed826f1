"""What is wrong with a trace, before any figure is read from it: each defect with what it makes unreliable.

Errors make confidence low, warnings medium; information says what the trace cannot answer and lowers nothing.

| threshold | value | why |
|---|---|---|
| `FEW_EVENTS` | 10 | fewer operators and device events than one small layer: the schedule recorded nothing |
| `LOST_SHARE` | 1 % | more lost than that moves every sum by about as much as a change that one looks for |
| `ORPHAN_SHARE` | 5 % | a queue that was filled before recording began leaves a few; more means lost launches |
| `LOST_LAUNCHES` | 5 %, and 5 | zero-sized launches leave none; graph capture is told apart |
| `OVERHEAD_SHARE` | 5 % | the profiler's own time, above which host times say more about it than about the program |
| `EARLY_NS` | 1 µs | device and host clocks are converted, and old files round to whole microseconds |
| `EARLY_SHARE` | 1 % | single conversions go wrong; more means that the clocks drift apart |
| `NESTING_SHARE` | 1 % | a few events overlap by rounding; self times stay right to about this share |
| `LONGEST_NS` | 1 h | no kernel or copy runs for an hour: its end was converted wrongly, or never recorded |
| `STRAY_SHARE`, `SILENT_SHARE` | 1 %, 90 % | one in a hundred events that stretches the span tenfold carries a wrong time |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import numpy as np
import polars as pl

from pyrometer.quantity import format_percent, format_seconds
from pyrometer.record import Record, doc
from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind
from pyrometer.trace.linking.tree import nest
from pyrometer.trace.timing.intervals import intersect, length, union
from pyrometer.trace.trace import RankTrace

FEW_EVENTS = 10
LOST_SHARE = 0.01
ORPHAN_SHARE = 0.05
LOST_LAUNCHES = 0.05
OVERHEAD_SHARE = 0.05
EARLY_NS = 1000
EARLY_SHARE = 0.01
NESTING_SHARE = 0.01
LONGEST_NS = 3_600_000_000_000
STRAY_SHARE = 0.01
SILENT_SHARE = 0.9

Severity = Literal["info", "warning", "error"]

TOTALS = ("breakdown", "idle", "operators", "kernels")
PER_STEP = ("breakdown", "idle", "difference")
"""`difference` is the comparison with another trace, `diff_traces`; all other names are analyses."""
LINKED = ("launches", "operators", "critical_path", "what_if")


class HealthIssue(Record, frozen=True, kw_only=True):
    """One defect or limit of a trace."""

    code: str
    severity: Severity
    message: Annotated[str, doc("fact, value, what it falsifies, what to do")]
    unreliable: Annotated[list[str], doc("analyses whose figures it falsifies")] = []
    count: Annotated[int | None, doc("events, launches or steps concerned")] = None
    share: Annotated[float | None, doc("of the events of that sort")] = None


class Health(Record, frozen=True, kw_only=True):
    """How far the figures of a trace may be trusted."""

    confidence: Annotated[
        Literal["high", "medium", "low"], doc("low with an error, medium with a warning, else high")
    ]
    issues: Annotated[list[HealthIssue], doc("the gravest first")] = []
    unreliable: Annotated[list[str], doc("analyses that some issue falsifies")] = []


def find_issues(trace: RankTrace) -> list[HealthIssue]:
    """Everything that is wrong with one rank's trace, the gravest first."""
    found = [issue for check in CHECKS for issue in check(trace)]
    return sorted(found, key=lambda issue: ("error", "warning", "info").index(issue.severity))


def _empty(trace: RankTrace) -> Iterator[HealthIssue]:
    events = trace.of_kind(Kind.CPU_OP, *DEVICE_WORK).height
    if events < FEW_EVENTS:
        yield HealthIssue(
            code="near_empty",
            severity="error" if not events else "warning",
            message=f"only {events} operators and device events were recorded, so that no figure is typical; "
            "record at least one whole step, and export before the schedule's next cycle begins",
            unreliable=list(TOTALS),
            count=events,
        )


def _damage(trace: RankTrace) -> Iterator[HealthIssue]:
    info = trace.info
    cut = next((repair for repair in info.repaired if repair.code == "truncated"), None)
    if cut is not None:
        yield HealthIssue(
            code="truncated",
            severity="warning",
            message=f"the file is cut off after {info.num_events} events ({cut.message}); sums stop there, and work at the "
            "end is missing; export again, and let the program finish writing",
            unreliable=[*TOTALS, "critical_path"],
            count=info.num_events,
        )
    lost = info.num_lost_events
    share = lost / max(info.num_events + lost, 1)
    if lost and cut is None:
        yield HealthIssue(
            code="lost_events",
            severity="error" if share > LOST_SHARE else "warning",
            message=f"{lost} events ({format_percent(share)}) could not be read and are missing from every sum; "
            "export the trace again",
            unreliable=[*TOTALS, "critical_path"] if share > LOST_SHARE else [],
            count=lost,
            share=share,
        )
    mended = [repair for repair in info.repaired if repair.code != "truncated" and repair.num_events]
    if mended:
        count = sum(repair.num_events for repair in mended)
        yield HealthIssue(
            code="repaired",
            severity="info",
            message=f"{count} damaged events were mended and kept ({', '.join(r.code for r in mended)}); their times are "
            "right, names or arguments may differ; pass --strict to refuse such files",
            count=count,
        )


def _orphans(trace: RankTrace) -> Iterator[HealthIssue]:
    orphans, work = trace.links.num_orphans, trace.device_work.height
    if not orphans or not trace.of_kind(*HOST).height:
        return
    share = orphans / work
    yield HealthIssue(
        code="orphans",
        severity="warning" if share > ORPHAN_SHARE else "info",
        message=f"{orphans} of {work} device events ({format_percent(share)}) have no launch in the trace, so that no "
        "operator, line or step is charged with them; record one more warm-up step",
        unreliable=list(LINKED) if share > ORPHAN_SHARE else [],
        count=orphans,
        share=share,
    )


def _lost_work(trace: RankTrace) -> Iterator[HealthIssue]:
    """Launches that left nothing on a device: dropped records, or the capture of a graph."""
    calls = trace.of_kind(Kind.RUNTIME, Kind.DRIVER)
    launches = calls.filter(pl.col("name").str.contains("(?i)launch"))
    left = np.isin(launches["event"].to_numpy(), trace.device_work["parent"].drop_nulls().to_numpy())
    missing = launches.filter(pl.Series(~left))
    share = missing.height / max(launches.height, 1)
    if share < LOST_LAUNCHES or missing.height < 5:
        return
    captures = calls["name"].str.contains("(?i)BeginCapture").any()
    yield HealthIssue(
        code="launches_without_work",
        severity="info" if captures else "warning",
        message=f"{missing.height} of {launches.height} launches ({format_percent(share)}) left no device event, "
        + (
            "since they were captured into a graph; read the trace of its replay for device times"
            if captures
            else "so that device time is missing; record one more warm-up step, or a shorter window"
        ),
        unreliable=[*TOTALS, "launches", "roofline", "critical_path"],
        count=missing.height,
        share=share,
    )


def _steps_without_work(trace: RankTrace) -> Iterator[HealthIssue]:
    steps, work = trace.steps, trace.device_work
    if not work.height or steps.height < 2:
        return
    starts = np.sort(work["start_ns"].to_numpy())
    within = np.searchsorted(starts, steps["end_ns"]) - np.searchsorted(starts, steps["start_ns"])
    launched = np.bincount(work["step"].drop_nulls().to_numpy(), minlength=steps.height)
    idle = (within == 0) & (launched == 0)
    if not idle.any():
        return
    leads = bool(idle[: int(idle.sum())].all())
    lost = "the window was dropped at its start" if leads else "device records were lost"
    yield HealthIssue(
        code="dropped_window" if leads else "steps_without_device_work",
        severity="error" if idle.mean() > 0.5 else "warning",
        message=f"{int(idle.sum())} of {steps.height} steps hold no device event while others do: {lost}, or these steps "
        "do no device work; sums and idle time over all steps mislead; record fewer steps, with one more to warm up",
        unreliable=list(PER_STEP),
        count=int(idle.sum()),
        share=float(idle.mean()),
    )


def _clocks(trace: RankTrace) -> Iterator[HealthIssue]:
    linked = trace.device_work.filter(pl.col("parent").is_not_null())
    launch = trace.events["start_ns"].gather(linked["parent"].cast(pl.UInt32))
    ahead = (launch - linked["start_ns"]).to_numpy()
    early = int((ahead > EARLY_NS).sum())
    if early:
        share = early / linked.height
        yield HealthIssue(
            code="clock_regression",
            severity="warning" if share > EARLY_SHARE else "info",
            message=f"{early} of {linked.height} device events begin before the call that launched them, by up to "
            f"{format_seconds(float(ahead.max()) * 1e-9)}: the device's clock was converted wrongly; launch delays and idle "
            "causes are off by as much; a newer driver or torch aligns them",
            unreliable=["launches", "idle", "critical_path", "what_if"] if share > EARLY_SHARE else [],
            count=early,
            share=share,
        )


def _strays(trace: RankTrace) -> Iterator[HealthIssue]:
    """A few events far from all others: times clamped to 0, or a wrong clock."""
    events = trace.of_kind(*(*HOST, *DEVICE_WORK))
    if events.height < 2 / STRAY_SHARE:
        return
    start, reach = events["start_ns"].to_numpy(), np.maximum.accumulate(events["end_ns"].to_numpy())
    silent = start[1:] - reach[:-1]
    at = int(np.argmax(silent)) + 1
    few = min(at, events.height - at)
    if silent[at - 1] > SILENT_SHARE * (reach[-1] - start[0]) and few <= STRAY_SHARE * events.height:
        yield HealthIssue(
            code="stray_events",
            severity="error",
            message=f"{few} events lie {format_seconds(float(silent[at - 1]) * 1e-9)} away from all others "
            f"({events['name'][0 if few == at else events.height - 1]}): their times are wrong, and they stretch the "
            "span; idle time is false; select the steps, or export the range without them",
            unreliable=[*TOTALS, "critical_path"],
            count=few,
            share=few / events.height,
        )


def _durations(trace: RankTrace) -> Iterator[HealthIssue]:
    endless = trace.device_work.filter(pl.col("dur_ns") >= LONGEST_NS)
    if endless.height:
        yield HealthIssue(
            code="impossible_duration",
            severity="error",
            message=f"{endless.height} device events last longer than an hour ({endless['name'][0]}): their ends were not "
            "recorded, and busy time is false; record again",
            unreliable=[*TOTALS, "critical_path", "roofline"],
            count=endless.height,
        )


def _overhead(trace: RankTrace) -> Iterator[HealthIssue]:
    marks = trace.of_kind(Kind.OVERHEAD)
    span = union(np.array([trace.activity.start_ns]), np.array([trace.activity.end_ns]))
    spent = length(intersect(union(marks["start_ns"].to_numpy(), marks["end_ns"].to_numpy()), span))
    share = spent / max(trace.activity.span_ns, 1)
    if share > OVERHEAD_SHARE:
        yield HealthIssue(
            code="profiler_overhead",
            severity="warning",
            message=f"the profiler itself took {format_seconds(spent * 1e-9)} ({format_percent(share)} of the span); host "
            "times and idle time contain it; warm the schedule up for longer, and record less (no stacks, no memory)",
            unreliable=["breakdown", "idle", "operators"],
            count=marks.height,
            share=share,
        )
    calls = trace.of_kind(Kind.PYTHON_FUNCTION).height
    if calls:
        yield HealthIssue(
            code="python_tracer",
            severity="info",
            message=f"{calls} Python calls were recorded, each of which costs about a microsecond: the host looks slower than "
            "it is; compare host times only with traces that have stacks, and take absolute times without them",
            count=calls,
        )


def _nesting(trace: RankTrace) -> Iterator[HealthIssue]:
    spans = trace.of_kind(Kind.USER_ANNOTATION)
    crossing = _crossings(spans)
    if crossing:
        yield HealthIssue(
            code="overlapping_spans",
            severity="info",
            message=f"{crossing} of {spans.height} user annotations overlap another on their thread without nesting; time in "
            "both goes to the one that began last, and viewers drop them; --export puts them on lanes of their own",
            count=crossing,
            share=crossing / spans.height,
        )
    violations = trace.links.num_nesting_violations
    host = trace.of_kind(*HOST).height
    if violations > crossing:
        share = violations / host
        # Spans are opened and closed inside of functions, so that with stacks they always cross some of them.
        calls = trace.of_kind(Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)
        is_grave = _crossings(calls) > NESTING_SHARE * host
        yield HealthIssue(
            code="nesting_violations",
            severity="warning" if is_grave else "info",
            message=f"{violations} of {host} host events ({format_percent(share)}) overlap another without nesting; self "
            "times still sum to wall time, but who called whom is uncertain there; record without stacks to avoid it",
            unreliable=["operators", "call_tree"] if is_grave else [],
            count=violations,
            share=share,
        )


def _crossings(spans: pl.DataFrame) -> int:
    """Spans that begin within another one of their thread and end after it."""
    track, start, end = (spans[name].to_numpy() for name in ("track", "start_ns", "end_ns"))
    return nest(track.astype(np.int64), start, end).violations


def _streams(trace: RankTrace) -> Iterator[HealthIssue]:
    kernels = trace.of_kind(Kind.KERNEL)
    before = pl.col("end_ns").cum_max().shift().over("device", "stream")
    overlapping = kernels.filter(pl.col("start_ns") < before).height
    if overlapping:
        yield HealthIssue(
            code="stream_overlap",
            severity="info",
            message=f"{overlapping} of {kernels.height} kernels begin before the one ahead of them on their stream has ended "
            "(programmatic dependent launch, or rounding): durations of kernels sum to more than busy time; use busy time",
            count=overlapping,
            share=overlapping / kernels.height,
        )


def _contents(trace: RankTrace) -> Iterator[HealthIssue]:
    """What the trace does not hold, and therefore cannot say."""
    ops = trace.of_kind(Kind.CPU_OP)
    has_work = trace.device_work.height > 0
    if ops.height and not has_work:
        yield _limit("cpu_only", "there is no device work: times are those of the host", "")
    if has_work and not ops.height:
        yield _limit(
            "no_operators",
            "there are no operators: device time cannot be charged to operators, modules or lines",
            "record with ProfilerActivity.CPU",
        )
    if unknown := sum(trace.info.unknown_categories.values()):
        named = ", ".join(f"{name or 'none'} ({n})" for name, n in trace.info.unknown_categories.items())
        yield _limit(
            "unknown_categories",
            f"{unknown} events of unknown categories are kept and not analysed: {named}",
            "",
        )
    detail = trace.tables["ops"]
    stacks = trace.of_kind(Kind.PYTHON_FUNCTION).height or detail["call_stack"].count()
    if ops.height and not stacks:
        yield _limit(
            "no_stacks", "no Python stacks were recorded: no source lines", "record with with_stack=True"
        )
    if ops.height and not detail["input_dims"].count():
        yield _limit(
            "no_shapes",
            "no shapes were recorded: no FLOP, no bytes and no roofline",
            "record with record_shapes=True",
        )


def _coverage(trace: RankTrace) -> Iterator[HealthIssue]:
    """How much of the job and of its run the trace stands for."""
    world = trace.info.world_size
    if world is not None and world > 1:
        yield _limit(
            "one_rank",
            f"rank {trace.rank} is one of {world}: it cannot say who keeps whom waiting",
            "open the files of all ranks together",
        )
    if not trace.steps.height:
        yield _limit(
            "no_steps",
            "no steps are marked and nothing repeats: all figures are of the whole trace",
            "call profiler.step() once a step",
        )
    elif trace.steps.height == 1:
        yield _limit(
            "single_step",
            "only one step was recorded: figures have no interval, and what differs between steps stays unseen",
            "record five",
        )


def _limit(code: str, fact: str, advice: str) -> HealthIssue:
    return HealthIssue(code=code, severity="info", message=f"{fact}; {advice}" if advice else fact)


CHECKS: tuple[Callable[[RankTrace], Iterator[HealthIssue]], ...] = (
    _empty,
    _damage,
    _orphans,
    _lost_work,
    _steps_without_work,
    _clocks,
    _strays,
    _durations,
    _overhead,
    _nesting,
    _streams,
    _contents,
    _coverage,
)
