"""From the log to what Inductor did: groups, pairs that stayed apart, buffers, foldings.

The probes of `private.inductor` tell most of it. Without them (or on a cache hit, where Inductor does not run) the
generated code alone is left: kernels without operators and bytes, buffers that are taken and used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from pyrometer.compiler.fusion.layouts import layout_name
from pyrometer.compiler.fusion.neighbours import apart
from pyrometer.compiler.fusion.probed import ProbedGraph, ProbedLoss, ProbedPattern, read_probed
from pyrometer.compiler.fusion.record import Folding, FusedGroup, FusionReport, MemoryPlan
from pyrometer.compiler.generated_code import CodeParts, kernel_kind, read_generated
from pyrometer.compiler.log import CompileLog

_NOT_PATTERNS = (("constant_fold", "constant"), ("remove_", "noop"))
"""Passes by the beginning of their names, and the kind of what they take away."""

_Probed = dict[tuple[str, bool, str], ProbedGraph]
"""By compilation, whether it is the backward, and name."""

_Codes = Mapping[tuple[str, bool], CodeParts]
"""By compilation, and whether it is the backward."""


def read_fusion(log: CompileLog) -> FusionReport:
    """What became of the graphs that Inductor compiled; what is not in the log stays empty or null.

    Groups come with the most traffic spared first, pairs that stayed apart with the most bytes in common first.
    """
    # Of graphs that bear the same name the last one counts.
    probed = {
        (own, probed_graph.is_backward, probed_graph.graph): probed_graph
        for own, probed_graph in read_probed(log, ProbedGraph)
    }
    # Code that was written again counts as it was written last.
    written = (entry for entry in log.of("inductor_output_code") if entry.payload)
    read = ((entry.id_text, read_generated(entry.payload)) for entry in written)
    codes = {(own, code.is_backward): code for own, code in read}
    groups = [*_probed_groups(log, probed, codes), *_groups_of_codes(probed, codes)]
    pairs = [pair for key, graph in probed.items() for pair in apart(key[0], graph)]
    refusals, layouts = Counter[str](), Counter[str]()
    for graph in probed.values():
        refusals.update(graph.reasons)
        layouts.update(layout_name(buffer.layout, buffer.size, buffer.stride) for buffer in graph.buffers)
    return FusionReport(
        groups=sorted(groups, key=lambda group: -(group.saved_bytes or 0)),
        not_fused=sorted(pairs, key=lambda pair: -(pair.shared_bytes or 0)),
        reasons=dict(refusals.most_common()),
        only_counted=sum(sum(graph.only_counted.values()) for graph in probed.values()),
        memory=_memory(probed, codes),
        folded=_folded(log),
        layouts=dict(layouts.most_common()),
    )


def _probed_groups(log: CompileLog, probed: _Probed, codes: _Codes) -> Iterator[FusedGroup]:
    vectorized = {
        (*key, kernel): is_vectorized
        for key, code in codes.items()
        for kernel, is_vectorized in code.kernels.items()
    }
    replaced = {
        (own, node): places
        for own, pattern in read_probed(log, ProbedPattern)
        for node, places in pattern.places.items()
    }
    for (own, is_backward, _), graph in probed.items():
        for group in graph.groups:
            further = (replaced.get((own, node), []) for node in group.nodes)
            yield FusedGroup(
                compile_id=own,
                name=group.name,
                kind=group.kind,
                ops=group.ops,
                num_nodes=group.num_nodes,
                read_bytes=None if group.reads is None else sum(group.reads.values()),
                written_bytes=None if group.writes is None else sum(group.writes.values()),
                saved_bytes=group.saved_bytes,
                places=list(dict.fromkeys(chain(group.places, *further))),
                is_backward=is_backward,
                kernel=group.kernel,
                is_reduction=group.is_reduction,
                vectorized=vectorized.get((own, is_backward, group.kernel)),
            )


def _groups_of_codes(probed: _Probed, codes: _Codes) -> Iterator[FusedGroup]:
    """What the code shows of graphs that no probe saw."""
    seen = {key[:2] for key in probed}
    for key, code in codes.items():
        if key not in seen:
            generated = (
                _group_of_code(key, name, kernel_kind(name), code.kernels[name]) for name in code.called
            )
            extern = (_group_of_code(key, name, "extern", None) for name in code.extern_calls)
            yield from (*generated, *extern)


def _group_of_code(key: tuple[str, bool], name: str, kind: str, is_vectorized: bool | None) -> FusedGroup:
    return FusedGroup(
        compile_id=key[0],
        name=name,
        kind=kind,
        ops=[],
        num_nodes=1 if kind == "extern" else 0,
        is_backward=key[1],
        kernel=name,
        is_reduction=kind == "reduction",
        vectorized=is_vectorized,
    )


def _memory(probed: _Probed, codes: _Codes) -> list[MemoryPlan]:
    # The parts of a graph, such as branches, have names; the graph itself, which comes last here, has none.
    whole = {
        key[:2]: graph for key, graph in sorted(probed.items(), key=lambda item: item[0][2], reverse=True)
    }
    plans = []
    for key in dict.fromkeys([*(key[:2] for key in probed), *codes]):
        graph, code = whole.get(key, ProbedGraph()), codes.get(key)
        plans.append(
            MemoryPlan(
                compile_id=key[0],
                is_backward=key[1],
                num_buffers=graph.num_buffers,
                reused=None if code is None else code.reuses,
                allocated=None if code is None else code.allocations,
                peak_bytes=graph.peak_bytes,
            )
        )
    return plans


def _folded(log: CompileLog) -> list[Folding]:
    """Foldings, those of one name in one compilation together; in the order in which they were met."""
    foldings: dict[tuple[str, str, str], Folding] = {}
    for folding in (*_taken_away(log), *_patterns(log)):
        key = (folding.compile_id, folding.kind, folding.name)
        before = foldings.get(key)
        foldings[key] = folding if before is None else _together(before, folding)
    return list(foldings.values())


def _together(first: Folding, second: Folding) -> Folding:
    known = [folding.seconds for folding in (first, second) if folding.seconds is not None]
    return Folding(
        compile_id=first.compile_id,
        name=first.name,
        kind=first.kind,
        count=first.count + second.count,
        nodes=list(dict.fromkeys([*first.nodes, *second.nodes])),
        seconds=sum(known) if known else None,
    )


def _taken_away(log: CompileLog) -> Iterator[Folding]:
    for own, loss in read_probed(log, ProbedLoss):
        kind = next((kind for beginning, kind in _NOT_PATTERNS if loss.name.startswith(beginning)), None)
        if kind is not None:
            yield Folding(
                compile_id=own,
                name=loss.name,
                kind=kind,
                count=loss.count,
                nodes=[node.name for node in loss.nodes],
                seconds=loss.seconds,
            )


def _patterns(log: CompileLog) -> Iterator[Folding]:
    return (
        Folding(
            compile_id=own, name=pattern.pattern, kind="pattern", count=pattern.count, nodes=pattern.nodes
        )
        for own, pattern in read_probed(log, ProbedPattern)
    )
