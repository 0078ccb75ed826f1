"""What happened inside the compiler, in words: graphs, passes, fused groups, caches, code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pyrometer.compiler.fusion.reasons import explain_reason
from pyrometer.compiler.fusion.record import FusedGroup
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import counted, format_bytes, format_seconds
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.facts.trace_words import MOST_LISTED, short, short_path


def _compilations(report: CompileReport) -> Section:
    body = [
        (
            compilation.compile_id,
            f"{short_path(compilation.file)}:{compilation.line} {compilation.function}".rstrip(),
            compilation.outcome,
            "–" if compilation.num_ops is None else str(compilation.num_ops),
            "–" if compilation.num_guards is None else str(compilation.num_guards),
            format_seconds(compilation.total_s),
            compilation.cache,
        )
        for compilation in report.compilations
    ]
    columns = ("compilation", "function", "outcome", "operations", "guards", "took", "caches")
    how = "One row per compilation: 2/1 is the second compilation of the third frame. A frame is a function, or the rest of one behind a break."
    return Section("compilations", "Compilations", [], Table(columns, body, frozenset({1, 2, 6})), how)


def _stages(report: CompileReport) -> Section | None:
    stages: dict[str, dict[str, int]] = {}
    for graph in report.graph_records:
        stages.setdefault(graph.compile_id, {})[graph.stage] = graph.num_ops
    names = [name for name in STAGES if any(name in held for held in stages.values())]
    body = [
        (name, *(str(held[stage]) if stage in held else "–" for stage in names))
        for name, held in stages.items()
    ]
    columns = ("operations of", *(STAGES[name] for name in names))
    return (
        Section("graphs", "Graphs from stage to stage", [], Table(columns, body)) if body and names else None
    )


STAGES = {
    "dynamo": "Dynamo",
    "joint": "joint",
    "inference": "AOT",
    "forward": "forward",
    "backward": "backward",
    "post_grad": "post-grad",
    "post_grad_backward": "post-grad, backward",
}
"""Stages of a graph that have a column, and its title."""


def _fusions(report: CompileReport) -> Section | None:
    ordered = sorted(
        (fusion for fusion in report.fusions if fusion.ops), key=lambda group: -(group.saved_bytes or 0)
    )
    body = [
        (
            short(group.kernel or group.name, 44),
            group.compile_id,
            short(", ".join(_ops(group)), 40),
            str(group.num_nodes),
            format_bytes(group.read_bytes),
            format_bytes(group.written_bytes),
            format_bytes(group.saved_bytes),
            ", ".join(short_path(place) for place in group.places[:2]),
        )
        for group in ordered
    ]
    facts = []
    known = [fusion.saved_bytes for fusion in report.fusions if fusion.saved_bytes is not None]
    if known:
        facts.append(Fact("traffic spared", format_bytes(sum(known)), "over all groups, by Inductor's sizes"))
    facts += [
        Fact(
            folding.kind,
            f"{folding.name}: {counted(folding.count, 'node')}",
            short(", ".join(folding.nodes), 60),
        )
        for folding in report.folded[:MOST_LISTED]
    ]
    facts += [
        Fact(f"buffers of {plan.compile_id}", _plan(plan.allocated, plan.reused, plan.peak_bytes))
        for plan in report.memory_plans[:MOST_LISTED]
    ]
    columns = ("group", "compilation", "operators", "nodes", "reads", "writes", "spared", "lines")
    how = "A group runs as one kernel: what its parts would have written and read again stays in registers or cache."
    table = Table(columns, body, frozenset({2, 7})) if body else None
    return Section("fusions", "Fused groups and buffers", facts, table, how if body else "")


def _ops(group: FusedGroup) -> list[str]:
    return [op.removeprefix("aten.").removesuffix(".default").removesuffix(".Tensor") for op in group.ops]


def _plan(allocated: int | None, reused: int | None, peak: int | None) -> str:
    parts = []
    if allocated is not None:
        parts.append(f"{allocated} allocated")
    if reused is not None:
        parts.append(f"{reused} reused")
    if peak is not None:
        parts.append(f"peak about {format_bytes(peak)}")
    return ", ".join(parts) or "not told"


def _not_fused(report: CompileReport) -> Section | None:
    body = [
        (
            short(", ".join(not_fused.first_ops) or not_fused.first, 40),
            short(", ".join(not_fused.second_ops) or not_fused.second, 40),
            not_fused.meaning or short(not_fused.reason, 90),
            format_bytes(not_fused.shared_bytes),
        )
        for not_fused in report.not_fused
    ]
    facts = [
        Fact(short(explain_reason(reason).meaning, 90), f"{count:,}×")
        for reason, count in Counter(report.not_fused_reasons).most_common(5)
    ]
    columns = ("this", "and that", "stayed apart because", "shared")
    if body:
        return Section(
            "apart", "Why neighbours were not fused", facts, Table(columns, body, frozenset({1, 2}))
        )
    return None


def _passes(report: CompileReport) -> Section | None:
    changed = [
        effect
        for effect in report.passes
        if effect.nodes_before != effect.nodes_after or effect.created or effect.erased
    ]
    ordered = sorted(changed or report.passes, key=lambda effect: -(effect.seconds or 0.0))
    body = [
        (
            effect.name,
            effect.subsystem,
            effect.compile_id,
            "–" if effect.nodes_before is None else f"{effect.nodes_before} → {effect.nodes_after}",
            format_seconds(effect.seconds),
        )
        for effect in ordered
    ]
    facts = [
        Fact("passes", f"{len(report.passes):,}", f"{len(changed):,} changed a graph" if changed else "")
    ]
    columns = ("pass", "on", "compilation", "nodes", "took")
    if body:
        return Section("passes", "Passes over the graphs", facts, Table(columns, body, frozenset({1})))
    return None


def _caches(report: CompileReport) -> Section | None:
    summary = report.cache
    if not summary.events:
        return None
    facts = [
        Fact("hits", str(summary.hits)),
        Fact("misses", str(summary.misses)),
        Fact("bypassed", str(summary.bypasses)),
    ]
    body = [
        (event.cache, event.compile_id, event.outcome, event.reason or short("; ".join(event.differing), 110))
        for event in summary.events
        if event.outcome != "hit" and (event.differing or event.reason)
    ]
    columns = ("cache", "compilation", "outcome", "differs from the nearest entry in")
    return Section(
        "caches", "Compile caches", facts, Table(columns, body, frozenset({2, 3})) if body else None
    )


def _code(report: CompileReport) -> Section | None:
    body = [
        (
            code.path.rpartition("/")[2],
            code.compile_id + (" backward" if code.is_backward else ""),
            format_bytes(code.num_bytes),
            str(len(code.kernels)),
            short(", ".join(f"{name} {count}×" for name, count in code.extern_calls.items()), 60),
            {True: "yes", False: "no", None: "–"}[code.vectorized],
        )
        for code in report.code
    ]
    columns = ("file", "compilation", "size", "kernels", "ready-made kernels", "vectorised")
    facts = [Fact("in all", format_bytes(report.artifact_bytes))]
    return Section("code", "Generated code", facts, Table(columns, body, frozenset({4}))) if body else None


CHAPTERS: tuple[Callable[[CompileReport], Section | None], ...] = (
    _compilations,
    _stages,
    _fusions,
    _not_fused,
    _passes,
    _caches,
    _code,
)
