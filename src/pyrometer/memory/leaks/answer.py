"""From what was watched to the answer: verdict, findings, rate, time until memory is full."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import msgspec
import torch

from pyrometer.bench.dynamo import graph_counts
from pyrometer.bench.garbage import in_sight
from pyrometer.memory.holders.find import find_holders
from pyrometer.memory.holders.fix import fix_for
from pyrometer.memory.holders.graph import retained_graphs
from pyrometer.memory.holders.record import Holder
from pyrometer.memory.leaks import sentences
from pyrometer.memory.leaks.births import BirthRecorder, MadeUnseen, live_tensors
from pyrometer.memory.leaks.cohorts import (
    FALSE_ALARM_RATE,
    MIN_STEPS,
    STILL,
    Birth,
    Growth,
    Span,
    enough,
    find_growth,
    needed_steps,
    sporadic,
)
from pyrometer.memory.leaks.findings import Finding, findings_of
from pyrometer.memory.leaks.levels import Levels
from pyrometer.memory.leaks.limits import memory_left
from pyrometer.memory.leaks.nodes import NODE_BYTES, Census, count_nodes, largest_graph, node_growth
from pyrometer.memory.leaks.sites import leak_site, line_of
from pyrometer.memory.private.dispatch import storage_key, storages
from pyrometer.memory.profile import UNDECIDED_GROWTH, LeakReport
from pyrometer.memory.trend.judge import judge_series
from pyrometer.memory.trend.verdict import SeriesVerdict
from pyrometer.quantity import Bytes

WARM_UP_BYTES = 4096
"""What was built in the first steps and stays is worth a word from this size on."""

STEPS_FOR_LEVELS = 400
"""Fewer readings of the process's memory tell nothing."""

FAR_MORE = 10
FAR_MORE_BYTES = 32 * 2**20
"""A process that grows by more than its tensors, by this factor and so much at least, is worth a word."""

_UNBOUNDED = ("leak", "cache")


@dataclass(frozen=True)
class Stretch:
    """What was seen of the first steps, which were watched one and all.

    Attributes:
        steps: how many.
        queued: sites of which nothing old survived, and more and more was alive.
        live_bytes: at its end, of all tensors.
    """

    steps: int
    queued: list[Growth]
    live_bytes: Bytes


@dataclass
class WatchedSteps:
    """What a watch has seen.

    Attributes:
        recorder: births and deaths.
        span: which steps were recorded.
        census: nodes of autograd graphs, after some steps.
        live: bytes of live tensors, after recorded steps.
        levels: of the process or the device.
        device: whose memory may run out.
        limit_bytes: given by the user.
        overhead_share: what watching cost.
        operators: whether operators were seen, or only tensors.
        first: the first steps, once windows follow them.
        deciding_steps: so many are enough.
    """

    recorder: BirthRecorder
    span: Span
    census: Sequence[Census]
    live: Sequence[tuple[int, Bytes]]
    levels: Levels
    device: torch.device
    limit_bytes: Bytes | None = None
    overhead_share: float | None = None
    operators: bool = True
    first: Stretch | None = None
    deciding_steps: int = MIN_STEPS

    @property
    def settled_bytes(self) -> Bytes:
        """Of live tensors at the end, without garbage that has been collected meanwhile."""
        sizes = [size for _, size in self.live]
        return min([*sizes[-max(1, len(sizes) // 6) :], self.recorder.live_bytes])

    @property
    def births(self) -> list[Birth]:
        """As the rules take them."""
        return [storage.birth for storage in self.recorder.grown]


@dataclass
class Decision:
    """What holds after garbage was collected.

    Attributes:
        findings: who holds what grows.
        garbage: sites that grew and that only the garbage collector frees.
        uncollected: the collector is off, so that this garbage stays; then its findings are among `findings`.
    """

    findings: list[Finding] = field(default_factory=list)
    garbage: list[Growth] = field(default_factory=list)
    uncollected: bool = False

    @property
    def garbage_bytes_per_step(self) -> float:
        """Of all sites."""
        return sum(growth.bytes_per_step for growth in self.garbage)


def grew_until(watched: WatchedSteps) -> list[Growth]:
    """What grew until the last step was over, whatever was let go since, as a script does that ends; collects garbage."""
    grown, end = watched.recorder.grown, watched.span.end
    let_go = {id(storage) for storage in grown if storage.died is not None and storage.died >= end}
    gc.collect()  # what dies now was garbage before
    births = [
        storage.birth._replace(died=None) if id(storage) in let_go else storage.birth for storage in grown
    ]
    return find_growth(births, watched.span)


def report_of(watched: WatchedSteps) -> LeakReport:
    """Decide, name and tell; collects garbage."""
    decision = decide(watched)
    findings = [finding for finding in decision.findings if finding.kind != "full"]
    if not findings and (series := _levels_grow(watched)) is not None:
        return _outside_of_tensors(watched, series)
    report = _report(watched, decision, findings)
    return msgspec.structs.replace(report, sentence=_sentence(watched, report, findings))


def _sentence(watched: WatchedSteps, report: LeakReport, findings: list[Finding]) -> str:
    if findings:
        return sentences.growing(report, findings)
    if report.verdict != "undecided":
        return sentences.at_rest(report, watched.settled_bytes, _unseen_growth(watched))
    missing = _missing_steps(watched)
    if missing is None:
        return sentences.unfollowed(report, _unfollowed(watched))
    span = watched.span
    if span.whole or len(span.judged) < enough(span):
        return sentences.undecided(report, missing)
    return sentences.undecided_in_windows(report, missing, len(span.steps))


def _report(watched: WatchedSteps, decision: Decision, findings: list[Finding]) -> LeakReport:
    rate = sum(finding.bytes_per_step for finding in findings)
    with_nodes = rate + NODE_BYTES * sum(finding.nodes_per_step for finding in findings)
    limit, left = memory_left(watched.device, watched.limit_bytes)
    growths = [growth for finding in findings for growth in finding.growths]
    unbounded = any(finding.kind in _UNBOUNDED for finding in findings)
    return LeakReport(
        verdict=_verdict(watched, findings),
        sentence="",
        unbounded=unbounded,
        bytes_per_step=rate,
        ci=[sum(growth.low for growth in growths), sum(growth.high for growth in growths)]
        if findings
        else [],
        sites=[leak_site(finding) for finding in findings],
        eta_steps=left / with_nodes if left is not None and with_nodes > 0 and unbounded else None,
        limit_bytes=limit,
        num_steps=watched.span.end,
        warmup_steps=watched.span.warm,
        false_alarm_rate=FALSE_ALARM_RATE,
        overhead_share=watched.overhead_share,
        steps=[step for step, _ in watched.live],
        live_bytes=[size for _, size in watched.live],
        notes=_notes(watched, decision, findings),
    )


def _levels_grow(watched: WatchedSteps) -> SeriesVerdict | None:
    """Growth of the process, or of the allocator, in a run that is long enough for a rule on noisy readings."""
    levels = watched.levels
    if watched.span.end < STEPS_FOR_LEVELS:
        return None
    series = judge_series(levels.steps, levels.bytes)
    return series if series.verdict == "leak" else None


def _outside_of_tensors(watched: WatchedSteps, series: SeriesVerdict) -> LeakReport:
    """Memory grows, and no tensor that Python sees does."""
    limit, left = memory_left(watched.device, watched.limit_bytes)
    report = _report(watched, Decision(), [])
    return msgspec.structs.replace(
        report,
        verdict="leak",
        sentence=sentences.outside_of_tensors(series, watched.levels.source),
        unbounded=True,
        bytes_per_step=series.bytes_per_step,
        ci=[series.bytes_per_step_low or 0.0, series.bytes_per_step_high or series.bytes_per_step],
        eta_steps=left / series.bytes_per_step if left is not None else None,
        limit_bytes=limit,
        false_alarm_rate=series.false_alarm_rate,
        steps=watched.levels.steps,
        live_bytes=watched.levels.bytes,
        notes=[*report.notes, series.reason],
    )


def decide(watched: WatchedSteps) -> Decision:
    """Apply the rules before and after a garbage collection, and name who holds what grows."""
    collecting, span, recorder = gc.isenabled(), watched.span, watched.recorder
    before = find_growth(watched.births, span)
    in_cycles: list[Finding] = []
    with ExitStack() as sight:
        if before and not collecting:
            sight.enter_context(in_sight())
            in_cycles = findings_of(before, recorder.grown)
        gc.collect()
        sight.enter_context(in_sight())
        after = find_growth(watched.births, span)
        held = {growth.site for growth in after}
        garbage = [growth for growth in before if growth.site not in held]
        findings = findings_of(after, recorder.grown) if after else []
        if garbage and not collecting:
            findings += [cycle for cycle in in_cycles if cycle.growths[0].site not in held]
        nodes = _graph_finding(watched, findings)
        recorder.scan(live_tensors(), first=True)  # for the level of now
    return Decision(
        findings=findings + ([nodes] if nodes is not None else []),
        garbage=garbage,
        uncollected=not collecting,
    )


def _graph_finding(watched: WatchedSteps, findings: Sequence[Finding]) -> Finding | None:
    """A graph that grows without end, unless a finding has said so already."""
    warm = [count for count in watched.census if count.step >= watched.span.warm]
    growth = node_growth(warm)
    if growth <= 0 or count_nodes(live_tensors()) - warm[0].nodes < (warm[-1].nodes - warm[0].nodes) / 2:
        return None
    tensor = largest_graph()
    if tensor is None:
        return None
    holder, graph = find_holders([tensor])[0], retained_graphs([tensor])[0]
    finding = next((one for one in findings if holder is None or _is_about(one, holder)), None)
    if finding is not None and (
        finding.holder is None or holder is None or finding.holder.name != holder.name
    ):
        finding.nodes_per_step = growth
        return None
    keys = {storage_key(storage) for storage, _ in storages(tensor)}
    made = [
        storage
        for storage in watched.recorder.grown
        if (own := storage.get()) is not None and storage_key(own) in keys
    ]
    site = made[-1].site if made else MadeUnseen(str(tensor.dtype).removeprefix("torch."), tensor.nbytes)
    nothing = Growth(site, "queued", (), 0.0, 0.0, 0.0, 1.0)
    if finding is not None:
        finding.nodes_per_step = growth
        if line_of(finding) is None:
            finding.growths.append(nothing)
        return None
    return Finding(
        holder=holder,
        growths=[nothing],
        tensor_graph=graph,
        fix=fix_for(holder, graph, None) or None,
        nodes_per_step=growth,
    )


def _is_about(finding: Finding, holder: Holder) -> bool:
    """Whether a finding tells of a graph already."""
    if finding.holder is not None and finding.holder.name == holder.name:
        return True
    return bool(finding.graph_rate) or (finding.tensor_graph is not None and finding.tensor_graph.nodes > 0)


def _verdict(watched: WatchedSteps, findings: Sequence[Finding]) -> str:
    kinds = {finding.kind for finding in findings}
    if kinds:
        return "leak" if "leak" in kinds else UNDECIDED_GROWTH if kinds == {"open"} else "growing cache"
    if _missing_steps(watched) or _unfollowed(watched):
        return "undecided"
    return "allocator warm-up" if _warm_up_bytes(watched) >= WARM_UP_BYTES else "stable"


def _missing_steps(watched: WatchedSteps) -> int | None:
    """How many steps would decide; `None` when these did."""
    span = watched.span
    if len(span.judged) < enough(span):
        return watched.deciding_steps
    hits = sporadic(watched.births, span)
    if not hits:
        return None
    needed, seen = needed_steps(hits, len(span.judged)), len(span.steps)
    return needed if needed > seen else 2 * seen  # as many would do if they came evenly; they did not


def _unfollowed(watched: WatchedSteps) -> list[Growth]:
    """What grew in the first steps without anything old that survived, and may still: tensors are that much more by now."""
    first = watched.first
    if first is None or not first.queued:
        return []
    rate = sum(growth.bytes_per_step for growth in first.queued)
    grown = watched.recorder.live_bytes - first.live_bytes
    return first.queued if grown >= STILL * rate * (watched.span.end - first.steps) > 0 else []


def _warm_up_bytes(watched: WatchedSteps) -> Bytes:
    """What was built after the first step and stays."""
    return watched.settled_bytes - watched.live[0][1] if watched.live else 0


def _unseen_growth(watched: WatchedSteps) -> Bytes:
    """By how much the process grew once warm, where that is far more than tensors did; else 0."""
    levels, span = watched.levels, watched.span
    readings = [size for step, size in zip(levels.steps, levels.bytes, strict=True) if step >= span.warm]
    if len(readings) < 2:
        return 0
    warm = [size for step, size in watched.live if step >= span.warm]
    grown = readings[-1] - readings[0]
    of_tensors = max(0, watched.recorder.live_bytes - warm[0]) if warm else 0
    return grown if grown > FAR_MORE_BYTES and grown > FAR_MORE * of_tensors else 0


def _notes(watched: WatchedSteps, decision: Decision, findings: list[Finding]) -> list[str]:
    notes = []
    if (unseen := _unseen_growth(watched)) > 0:
        notes.append(sentences.unseen_growth(unseen, watched.levels.source))
    if nodes := sum(finding.nodes_per_step for finding in findings):
        notes.append(sentences.nodes(nodes, NODE_BYTES))
    if decision.garbage and decision.uncollected:
        notes.append(sentences.uncollected_garbage(decision.garbage_bytes_per_step))
    elif decision.garbage:
        notes.append(sentences.collected_garbage(decision.garbage_bytes_per_step))
    if not watched.operators:
        notes.append(sentences.TENSORS_ONLY)
    elif (graphs := graph_counts()) is not None and graphs.num_graphs:
        notes.append(sentences.COMPILED)
    if watched.operators and any(line_of(finding) is None for finding in decision.findings):
        notes.append(sentences.UNSEEN)
    if not watched.span.whole and watched.span.judged:
        notes.append(sentences.windows(len(watched.span.steps), watched.span.lag))
    return notes
