"""Synchronisation points of a trace as findings of the rules that explain them.

What a point costs is the idle time of devices that drained during it: while a device still has work, a waiting host loses
nothing. Without a device a point costs the host's own time in the call, and would wait if there were a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Confidence, Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.data.patterns.waiting import DATA
from pyrometer.rules.finding import Finding, Severity
from pyrometer.rules.host.patterns.claims import claimed
from pyrometer.rules.host.patterns.reads import Read
from pyrometer.rules.host.patterns.rounds import FEWEST_ROUNDS, reading_ns
from pyrometer.rules.joining import module_of
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Limit, Module, Rule
from pyrometer.rules.untraced import untraced
from pyrometer.source.rewriting import Rewrite

if TYPE_CHECKING:
    from pyrometer.trace.records.gains import Recoverable
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.records.waiting import SyncPoint

LIMITS = (
    Limit("min_share", 0.01, "below one percent of a step no measurement can tell it from noise"),
    Limit("serious_share", 0.05, "without a device: of the step, from which on it is more than a remark"),
)
"""Of all rules that explain synchronisation points."""

MOST_LINKS = 5

OPTIMIZER = "optimizer"
"""The phase of a step that updates the parameters, as traces name it."""

INNER = {
    "aten::item": ("aten::_local_scalar_dense",),
    "aten::is_nonzero": ("aten::_local_scalar_dense",),
    "aten::to": ("aten::copy_", "aten::_to_copy"),
    "aten::index": ("aten::nonzero",),
}
"""Operators within others that make the call that waits."""


@dataclass(frozen=True)
class Stall:
    """All synchronisation points that one rule explains at one place, with what the source says about them."""

    rows: tuple[int, ...]
    """Of `synchronisation.points`."""
    points: tuple[SyncPoint, ...]
    place: Place
    module: Module | None
    reads: tuple[Read, ...]
    on_device: bool
    num_steps: int
    span_ns: int
    step_s: float | None

    @property
    def point(self) -> SyncPoint:
        """The longest of them."""
        return self.points[0]

    @property
    def calls_per_step(self) -> float:
        """How often the host waits there."""
        return sum(point.num_calls for point in self.points) / self.num_steps

    @property
    def stalled_ns(self) -> int:
        """Time that the host waited while a device was at work."""
        return sum(point.stalled_ns for point in self.points)

    @property
    def idle_ns(self) -> int:
        """Time in which devices then had nothing to do."""
        return sum(point.device_idle_after_ns for point in self.points)

    @property
    def host_ns(self) -> int:
        """Time of the host in the calls."""
        return sum(point.total_ns for point in self.points)

    @property
    def share(self) -> float:
        """Of the span: idle time that it causes; without a device the host's time in the calls."""
        return min(1.0, (self.idle_ns if self.on_device else self.host_ns) / self.span_ns)

    @property
    def read(self) -> Read | None:
        """The expression that is meant: the one in most loops."""
        return self.reads[0] if self.reads else None

    @property
    def text(self) -> str:
        """The source of the expression, else the operator."""
        return self.read.text if self.read is not None else self.point.where.op or self.point.name


def stalls(code: str, case: Case) -> Iterator[Stall]:
    """The synchronisation points that one rule explains, put together by place: a function may run in many modules."""
    report = case.trace
    if report is None or not report.span_ns:
        return
    groups: dict[tuple[object, ...], list[int]] = {}
    reads: dict[int, tuple[Read, ...]] = {}
    points = report.synchronisation.points
    for row, point in enumerate(points):
        owner, found = claimed(point, case)
        if owner == code:
            reads[row] = found
            key = (point.where.file, point.where.line, point.where.function, point.name)
            groups.setdefault(key, []).append(row)
    for rows in groups.values():
        where, found = points[rows[0]].where, reads[rows[0]]
        yield Stall(
            rows=tuple(rows),
            points=tuple(points[row] for row in rows),
            place=place_of(case, where, line=found[0].line if found else None),
            module=module_of(where.file, case.modules),
            reads=found,
            on_device=not report.synchronisation.would_stall,
            num_steps=case.num_traced_steps,
            span_ns=report.span_ns,
            step_s=case.step_s,
        )


def worth_telling(stall: Stall, rule: Rule, case: Case) -> bool:
    """Whether it costs enough to speak of."""
    return stall.share >= case.limit(rule, "min_share")


class Told(NamedTuple):
    """What a rule says about one stall."""

    advice: str
    rewrite: Rewrite | None = None
    with_it: float = 0.0
    """Share of the span that goes with the calls, beside their own: what is only done for their sake."""


def stall_findings(
    rule: Rule,
    case: Case,
    tell: Callable[[Stall], Told],
    keep: Callable[[Stall], bool] = lambda _: True,
) -> Iterator[Finding]:
    """Findings about the points that a rule explains; `tell` gives the advice for one of them that `keep` lets pass."""
    for stall in stalls(rule.code, case):
        if worth_telling(stall, rule, case) and keep(stall):
            yield _finding(rule, case, stall, tell(stall))


def _finding(rule: Rule, case: Case, stall: Stall, told: Told) -> Finding:
    report, steps = case.trace, stall.num_steps
    assert report is not None
    return rule.finding(
        severity=_severity(rule, case, stall, told.with_it),
        message=message_of(stall, told.with_it, steps=bool(report.steps)),
        where=stall.place,
        evidence={
            "calls_per_step": stall.calls_per_step,
            "stalled_ns_per_step": round(stall.stalled_ns / steps),
            "device_idle_after_ns_per_step": round(stall.idle_ns / steps),
            "host_ns_per_step": round(stall.host_ns / steps),
            "also_on_lines": [str(read.line) for read in stall.reads[1:] if read.line != stall.place.line],
        },
        links=links_of(stall, report),
        cost=cost_of(stall, told.with_it),
        gain=gain_of(stall, case, told.with_it),
        confidence=confidence_of(stall),
        advice=told.advice,
        rewrite=told.rewrite,
        resource=_resource(stall, report),
    )


def _resource(stall: Stall, report: RankReport) -> str:
    """The time that it accounts for: that of loading, where the host only then loads what the device waits for."""
    drained = [group for group in report.idle.groups if group.cause == "sync_drain"]
    loading = sum(group.total_ns for group in drained if group.host == "data_loading")
    if (
        stall.on_device
        and loading > stall.idle_ns / 2
        and stall.idle_ns > sum(g.total_ns for g in drained) / 2
    ):
        return DATA
    return f"sync:{stall.place.file}:{stall.place.line}" if stall.place.file else f"sync:{stall.point.name}"


def _severity(rule: Rule, case: Case, stall: Stall, with_it: float) -> Severity:
    """Without a device nothing waits: a remark, unless the calls themselves cost enough."""
    costs = stall.on_device or stall.share + with_it >= case.limit(rule, "serious_share")
    return rule.severity if costs else "info"


def links_of(stall: Stall, report: RankReport) -> list[str]:
    """Where the points stand in the record: among the longest, else among all."""
    listed = len(report.sync_points)
    tables = ("sync_points" if row < listed else "synchronisation/points" for row in stall.rows)
    return [f"/trace/{table}/{row}" for table, row in zip(tables, stall.rows, strict=True)][:MOST_LINKS]


def message_of(stall: Stall, with_it: float = 0.0, *, steps: bool) -> str:
    """Fact, figure and place in one sentence."""
    times = f"{stall.calls_per_step:,.4g}×{' per step' if steps else ''}"
    where, share = spoken(stall.place), format_percent(stall.share)
    if not stall.on_device:
        with_it_all = f", {format_percent(stall.share + with_it)} with what is done for it" if with_it else ""
        takes = f"takes {share} of the time{with_it_all}"
        return f"`{stall.text}`{where} runs {times} and {takes}; each call would wait for a device"
    idle = f" ({format_seconds(stall.share * stall.step_s)} per step)" if stall.step_s and steps else ""
    waits = f"`{stall.text}`{where} makes the host wait for the device {times}"
    return f"{waits}; the device then has nothing to do for {share} of the time{idle}"


def cost_of(stall: Stall, with_it: float = 0.0) -> Cost:
    """The share of the span, in seconds of an untraced step where its length is known."""
    how = (
        "idle time of the device after the wait"
        if stall.on_device
        else "host time of the calls and of what is done for them"
    )
    share = min(1.0, stall.share + with_it)
    seconds = None if stall.step_s is None else share * stall.step_s
    return Cost(seconds_per_step=seconds, share=share, method=f"trace: {how}, as a share of the span")


def gain_of(stall: Stall, case: Case, with_it: float = 0.0) -> Gain:
    """What not waiting would bring: the replay's answer where it tried these calls, else all that they cost."""
    report = case.trace
    assert report is not None
    if not stall.on_device:
        return _gain_on_host(stall, case, with_it)
    low = max(0.0, 1 - stall.share)
    for recoverable in report.recoverable:
        if recoverable.kind == "sync" and _is_same(recoverable, stall.point):
            low = max(low, recoverable.ratio_low)  # a replay holds all waits of this kind, wherever they are
            return Gain(
                ratio_low=low,
                ratio_high=max(low, recoverable.ratio_high),
                method="trace what-if: replayed without the waits",
            )
    return Gain(ratio_low=low, ratio_high=1.0, method="bound: none of the idle time that follows the wait")


def _gain_on_host(stall: Stall, case: Case, with_it: float) -> Gain:
    """At best all goes that is only done for the reads; at worst the calls, with what is surely done for them."""
    phase = stall.point.where.phase
    whole = min(1.0, stall.share + max(with_it, loop_share(stall, case)))
    sure = min(1.0, stall.share + with_it)
    return Gain(
        ratio_low=1 - untraced(case, whole, phase=phase).most,
        ratio_high=1 - untraced(case, sure, short=True, phase=phase).least,
        method="removal of the calls and of what is done for them; at most their phase as measured without the profiler, at worst "
        "half, as the profiler lengthens short calls",
    )


def loop_share(stall: Stall, case: Case) -> float:
    """What else of the span a function does only for these reads, without a device: cutting a tensor up, and its loop."""
    trace = case.trace
    if stall.on_device or trace is None or not trace.steps or stall.calls_per_step < FEWEST_ROUNDS:
        return 0.0
    where = stall.point.where
    reads = sum(point.num_calls for point in stall.points)
    return max(0.0, reading_ns(trace, where, where.function, reads=reads) / stall.span_ns - stall.share)


def confidence_of(stall: Stall) -> Confidence:
    """High with a device and the line; without a device the stall is inferred."""
    if not stall.on_device:
        return "medium"
    return "high" if stall.reads or stall.place.file is None else "medium"


def _is_same(tried: Recoverable, point: SyncPoint) -> bool:
    """Whether a change that was replayed concerns a point: the same call, from the same function or operator."""
    call, _, within = tried.name.partition(" in ")
    if call not in point.calls:
        return False
    if point.where.file is None:
        return within in {point.name, point.where.op or "", *INNER.get(point.name, ())}
    there, here = tried.where, point.where
    return (there.file, there.line, there.function) == (here.file, here.line, here.function)
