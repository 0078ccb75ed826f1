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


def _compilations(report: CompileReport) -> Section | None:
    body = [
        (
            one.compile_id,
            f"{short_path(one.file)}:{one.line} {one.function}".rstrip(),
            one.outcome,
            "–" if one.num_ops is None else str(one.num_ops),
            "–" if one.num_guards is None else str(one.num_guards),
            format_seconds(one.total_s),
            one.cache,
        )
        for one in report.compilations
    ]
    columns = ("compilation", "function", "outcome", "operations", "guards", "took", "caches")
    how = "One row per compilation: 2/1 is the second compilation of the third frame. A frame is a function, or the rest of one behind a break."
    return (
        Section("compilations", "Compilations", [], Table(columns, body, frozenset({1, 2, 6})), how)
        if body
        else None
    )


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
    ordered = sorted((one for one in report.fusions if one.ops), key=lambda one: -(one.saved_bytes or 0))
    body = [
        (
            short(one.kernel or one.name, 44),
            one.compile_id,
            short(", ".join(_ops(one)), 40),
            str(one.num_nodes),
            format_bytes(one.read_bytes),
            format_bytes(one.written_bytes),
            format_bytes(one.saved_bytes),
            ", ".join(short_path(place) for place in one.places[:2]),
        )
        for one in ordered
    ]
    facts = []
    known = [one.saved_bytes for one in report.fusions if one.saved_bytes is not None]
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
            short(", ".join(one.first_ops) or one.first, 40),
            short(", ".join(one.second_ops) or one.second, 40),
            one.meaning or short(one.reason, 90),
            format_bytes(one.shared_bytes),
        )
        for one in report.not_fused
    ]
    facts = [
        Fact(short(explain_reason(reason).meaning, 90), f"{count:,}×")
        for reason, count in Counter(report.not_fused_reasons).most_common(5)
    ]
    columns = ("this", "and that", "stayed apart because", "shared")
    return (
        Section("apart", "Why neighbours were not fused", facts, Table(columns, body, frozenset({1, 2})))
        if body
        else None
    )


def _passes(report: CompileReport) -> Section | None:
    changed = [
        one for one in report.passes if one.nodes_before != one.nodes_after or one.created or one.erased
    ]
    ordered = sorted(changed or report.passes, key=lambda one: -(one.seconds or 0.0))
    body = [
        (
            one.name,
            one.subsystem,
            one.compile_id,
            "–" if one.nodes_before is None else f"{one.nodes_before} → {one.nodes_after}",
            format_seconds(one.seconds),
        )
        for one in ordered
    ]
    facts = [
        Fact("passes", f"{len(report.passes):,}", f"{len(changed):,} changed a graph" if changed else "")
    ]
    columns = ("pass", "on", "compilation", "nodes", "took")
    return (
        Section("passes", "Passes over the graphs", facts, Table(columns, body, frozenset({1})))
        if body
        else None
    )


def _caches(report: CompileReport) -> Section | None:
    found = report.cache
    if not found.events:
        return None
    facts = [
        Fact("hits", str(found.hits)),
        Fact("misses", str(found.misses)),
        Fact("bypassed", str(found.bypasses)),
    ]
    body = [
        (one.cache, one.compile_id, one.outcome, one.reason or short("; ".join(one.differing), 110))
        for one in found.events
        if one.outcome != "hit" and (one.differing or one.reason)
    ]
    columns = ("cache", "compilation", "outcome", "differs from the nearest entry in")
    return Section(
        "caches", "Compile caches", facts, Table(columns, body, frozenset({2, 3})) if body else None
    )


def _code(report: CompileReport) -> Section | None:
    body = [
        (
            one.path.rpartition("/")[2],
            one.compile_id + (" backward" if one.is_backward else ""),
            format_bytes(one.num_bytes),
            str(len(one.kernels)),
            short(", ".join(f"{name} {count}×" for name, count in one.extern_calls.items()), 60),
            {True: "yes", False: "no", None: "–"}[one.vectorized],
        )
        for one in report.code
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
