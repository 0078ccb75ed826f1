"""From what was watched to the answer: verdict, findings, rate, time until memory is full."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import torch

from pyrometer.bench.dynamo import graph_counts
from pyrometer.memory.holders.find import find_holders
from pyrometer.memory.holders.fix import fix_for
from pyrometer.memory.holders.graph import retained_graphs
from pyrometer.memory.leaks import sentences
from pyrometer.memory.leaks.births import BirthRecorder, MadeUnseen, live_tensors
from pyrometer.memory.leaks.cohorts import (
    FALSE_ALARM_RATE,
    MIN_STEPS,
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
from pyrometer.memory.leaks.nodes import Census, count_nodes, largest_graph, node_growth
from pyrometer.memory.leaks.sites import leak_site, line_of
from pyrometer.memory.private.dispatch import storage_key, storages
from pyrometer.memory.profile import LeakReport
from pyrometer.memory.trend.judge import judge_series
from pyrometer.memory.trend.verdict import SeriesVerdict
from pyrometer.quantity import Bytes

WARM_UP_BYTES = 4096
"""What was built in the first steps and stays is worth a word from this size on."""

STEPS_FOR_LEVELS = 400
"""Fewer readings of the process's memory tell nothing."""

_UNBOUNDED = ("leak", "cache")


@dataclass
class Evidence:
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


def report_of(evidence: Evidence) -> LeakReport:
    """Decide, name and tell; collects garbage."""
    decision = decide(evidence)
    findings = [finding for finding in decision.findings if finding.kind != "full"]
    if not findings and (series := _levels_grow(evidence)) is not None:
        return _outside_of_tensors(evidence, series)
    return sentences.with_sentence(_report(evidence, decision, findings), findings, _missing_steps(evidence))


def _report(evidence: Evidence, decision: Decision, findings: list[Finding]) -> LeakReport:
    rate = sum(finding.bytes_per_step for finding in findings)
    limit, left = memory_left(evidence.device, evidence.limit_bytes)
    growths = [growth for finding in findings for growth in finding.growths]
    unbounded = any(finding.kind in _UNBOUNDED for finding in findings)
    return LeakReport(
        verdict=_verdict(evidence, findings),
        sentence="",
        unbounded=unbounded,
        bytes_per_step=rate,
        ci=[sum(growth.low for growth in growths), sum(growth.high for growth in growths)]
        if findings
        else [],
        sites=[leak_site(finding) for finding in findings],
        eta_steps=left / rate if left is not None and rate > 0 and unbounded else None,
        limit_bytes=limit,
        num_steps=evidence.span.end,
        warmup_steps=evidence.span.warm,
        false_alarm_rate=FALSE_ALARM_RATE,
        overhead_share=evidence.overhead_share,
        steps=[step for step, _ in evidence.live],
        live_bytes=[size for _, size in evidence.live],
        notes=_notes(evidence, decision),
    )


def _levels_grow(evidence: Evidence) -> SeriesVerdict | None:
    """Growth of the process, or of the allocator, in a run that is long enough for a rule on noisy readings."""
    levels = evidence.levels
    if evidence.span.end < STEPS_FOR_LEVELS:
        return None
    series = judge_series(levels.steps, levels.bytes)
    return series if series.verdict == "leak" else None


def _outside_of_tensors(evidence: Evidence, series: SeriesVerdict) -> LeakReport:
    """Memory grows, and no tensor that Python sees does."""
    limit, left = memory_left(evidence.device, evidence.limit_bytes)
    report = _report(evidence, Decision(), [])
    return msgspec.structs.replace(
        report,
        verdict="leak",
        sentence=sentences.outside_of_tensors(series, evidence.levels.source),
        unbounded=True,
        bytes_per_step=series.bytes_per_step,
        ci=[series.bytes_per_step_low or 0.0, series.bytes_per_step_high or series.bytes_per_step],
        eta_steps=left / series.bytes_per_step if left is not None else None,
        limit_bytes=limit,
        false_alarm_rate=series.false_alarm_rate,
        steps=evidence.levels.steps,
        live_bytes=evidence.levels.bytes,
        notes=[*report.notes, series.reason],
    )


def decide(evidence: Evidence) -> Decision:
    """Apply the rules before and after a garbage collection, and name who holds what grows."""
    collecting, span, recorder = gc.isenabled(), evidence.span, evidence.recorder
    before = find_growth(evidence.births, span)
    in_cycles = findings_of(before, recorder.grown) if before and not collecting else []
    gc.collect()
    after = find_growth(evidence.births, span)
    held = {growth.site for growth in after}
    garbage = [growth for growth in before if growth.site not in held]
    findings = findings_of(after, recorder.grown) if after else []
    if garbage and not collecting:
        findings += [one for one in in_cycles if one.growths[0].site not in held]
    nodes = _graph_finding(evidence, findings)
    return Decision(
        findings=findings + ([nodes] if nodes is not None else []),
        garbage=garbage,
        uncollected=not collecting,
    )


def _graph_finding(evidence: Evidence, findings: Sequence[Finding]) -> Finding | None:
    """A graph that grows without end, unless a finding has said so already."""
    warm = [count for count in evidence.census if count.step >= evidence.span.warm]
    growth = node_growth(warm)
    if growth <= 0 or count_nodes(live_tensors()) - warm[0].nodes < (warm[-1].nodes - warm[0].nodes) / 2:
        return None
    tensor = largest_graph()
    if tensor is None:
        return None
    holder, graph = find_holders([tensor])[0], retained_graphs([tensor])[0]
    for finding in findings:
        if holder is None or (finding.holder is not None and finding.holder.name == holder.name):
            return None
        if finding.graph_rate or (finding.tensor_graph is not None and finding.tensor_graph.nodes > 0):
            return None
    keys = {storage_key(storage) for storage, _ in storages(tensor)}
    made = [
        one for one in evidence.recorder.grown if (own := one.get()) is not None and storage_key(own) in keys
    ]
    site = made[-1].site if made else MadeUnseen(str(tensor.dtype).removeprefix("torch."), tensor.nbytes)
    nothing = Growth(site, "queued", (), 0.0, 0.0, 0.0, 1.0)
    return Finding(
        holder=holder,
        growths=[nothing],
        tensor_graph=graph,
        fix=fix_for(holder, graph, None) or None,
        nodes_per_step=growth,
    )


def _verdict(evidence: Evidence, findings: Sequence[Finding]) -> str:
    kinds = {finding.kind for finding in findings}
    if kinds:
        return "leak" if "leak" in kinds else "growing cache"
    if _missing_steps(evidence):
        return "undecided"
    return "allocator warm-up" if _warm_up_bytes(evidence) >= WARM_UP_BYTES else "stable"


def _missing_steps(evidence: Evidence) -> int | None:
    """How many steps would decide; `None` when these did."""
    span = evidence.span
    if len(span.judged) < enough(span):
        return MIN_STEPS if span.whole else 2 * span.end
    hits = sporadic(evidence.births, span)
    return needed_steps(hits, len(span.judged)) if hits else None


def _warm_up_bytes(evidence: Evidence) -> Bytes:
    """What was built after the first step and stays."""
    sizes = [size for _, size in evidence.live]
    return min(sizes[-max(1, len(sizes) // 6) :]) - sizes[0] if sizes else 0


def _notes(evidence: Evidence, decision: Decision) -> list[str]:
    notes = []
    if decision.garbage and decision.uncollected:
        notes.append(sentences.uncollected_garbage(decision.garbage_bytes_per_step))
    elif decision.garbage:
        notes.append(sentences.collected_garbage(decision.garbage_bytes_per_step))
    if not evidence.operators:
        notes.append(sentences.TENSORS_ONLY)
    elif (graphs := graph_counts()) is not None and graphs.num_graphs:
        notes.append(sentences.COMPILED)
    if evidence.operators and any(line_of(finding) is None for finding in decision.findings):
        notes.append(sentences.UNSEEN)
    if not evidence.span.whole and evidence.span.judged:
        notes.append(sentences.windows(len(evidence.span.steps), evidence.span.lag))
    return notes
