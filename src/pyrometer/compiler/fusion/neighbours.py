"""Pairs of groups that touch the same memory and yet stayed apart, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pyrometer.compiler.fusion.probed import ProbedGraph, ProbedPair
from pyrometer.compiler.fusion.reasons import Explanation, explain_reason
from pyrometer.compiler.fusion.record import NotFused
from pyrometer.compiler.private.refusals import shared_bytes

FIRST_IS_READY_MADE = "node1 is extern but not a triton kernel"
SECOND_IS_READY_MADE = "node2 is extern or nop"
"""What Inductor says of ready-made kernels when it is asked; it mostly leaves them out before."""

NOTHING_SHARED = "no shared data"
OTHER_ORDER = "no shared data due to indexing mismatch"
"""Inductor says the first of both; of a pair that does touch the same buffers the second one is meant."""


def apart(compile_id: str, graph: ProbedGraph) -> Iterator[NotFused]:
    """The neighbours of one graph that share bytes: those that Inductor gave a reason for, and ready-made kernels.

    Args:
        compile_id: of the compilation.
        graph: what a probe told of it.
    """
    ops = {group.name: group.ops for group in graph.groups}
    pairs = [pair for pair in graph.not_fused if pair.shared_bytes]
    for pair in (*pairs, *_ready_made(graph)):
        first_ops, second_ops = ops.get(pair.first, []), ops.get(pair.second, [])
        meaning, advice = _explained(pair.reason, first_ops, second_ops)
        yield NotFused(
            compile_id=compile_id,
            first=pair.first,
            second=pair.second,
            first_ops=first_ops,
            second_ops=second_ops,
            reason=pair.reason,
            shared_bytes=pair.shared_bytes,
            meaning="" if meaning == pair.reason else meaning,
            advice=advice,
            is_backward=graph.is_backward,
        )


def _explained(reason: str, first_ops: Sequence[str], second_ops: Sequence[str]) -> Explanation:
    explanation = explain_reason(OTHER_ORDER if reason == NOTHING_SHARED else reason)
    ready_made = {FIRST_IS_READY_MADE: first_ops, SECOND_IS_READY_MADE: second_ops}.get(reason)
    if ready_made is None or any(_has_template(op) for op in ready_made):
        return explanation
    return explanation._replace(advice="")


def _has_template(op: str) -> bool:
    """Whether Inductor can write an operator itself that it mostly calls ready-made."""
    return any(part in op for part in ("mm", "convolution", "linear"))


def _ready_made(graph: ProbedGraph) -> Iterator[ProbedPair]:
    """A ready-made kernel and a generated one, of which one reads what the other one writes."""
    known = {frozenset((pair.first, pair.second)) for pair in graph.not_fused}
    for before, after in combinations(graph.groups, 2):
        kinds = [before.kind, after.kind]
        if kinds.count("extern") != 1 or "nop" in kinds or frozenset((before.name, after.name)) in known:
            continue
        shared = shared_bytes(before.writes or {}, after.reads or {})
        if shared:
            reason = FIRST_IS_READY_MADE if kinds[0] == "extern" else SECOND_IS_READY_MADE
            yield ProbedPair(before.name, after.name, reason, shared)
