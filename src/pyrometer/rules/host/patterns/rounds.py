"""What the rounds of a loop cost on the host, from the call tree of a trace.

A call that is short is mostly dispatch, which one call for all elements pays once. What would stay is one round, the calls
that are long, and moving the elements themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.quantity import Ratio
from pyrometer.rules.joining import Located
from pyrometer.rules.sequences import short_ns

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import TreeNode

SLOW_BYTES_PER_S = 1e9
"""A rate of moving elements that any core reaches, on small tensors too."""

FEWEST_ROUNDS = 8

DISPATCHES = 10
"""What a call on few numbers costs, in calls that compute nothing at all."""

SURELY_WORK = 20
"""In the same unit: what a call takes above that is no dispatch for certain."""

READING = frozenset(
    ["aten::unbind", "aten::select", "aten::as_strided", "aten::item", "aten::_local_scalar_dense",
     "aten::is_nonzero"]
)  # fmt: skip
"""Operators that make the elements of a tensor tensors of their own, and numbers of those; none of them computes."""


class Rounds(NamedTuple):
    """The rounds of a function's loop, over all calls of the function."""

    per_call: float
    """Rounds in one call of the function."""
    total_ns: int
    """Of all that runs once per round, with the function's own Python."""
    short_ns: int
    """Of that in short calls, less the time for moving the elements."""


def rounds_of(trace: RankReport, where: Located, function: str | None) -> Rounds | None:
    """The rounds of the loop in the function at a spot; null where the tree shows none."""
    children = _children(trace)
    roots = frames_of(trace, where, function)
    calls = sum(root.calls for root in roots)
    inner = [node for root in roots for node in children[root.node]]
    most = max((node.calls for node in inner), default=0)
    if not calls or most < FEWEST_ROUNDS * calls:
        return None
    repeated = [node for node in inner if 2 * node.calls >= most]
    below = [node for top in repeated for node in _subtree(top, children)]
    own_ns = sum(root.self_ns for root in roots)
    spent_ns = sum(node.self_ns for node in below if node.self_ns < short_ns(trace) * node.calls)
    return Rounds(
        per_call=most / calls,
        total_ns=own_ns + sum(node.total_ns for node in repeated),
        short_ns=max(0, own_ns + spent_ns - _moving_ns(trace, {node.name for node in below})),
    )


def repeated_ns(trace: RankReport, where: Located, function: str | None) -> int:
    """Of what a function runs many times in each of its calls, with its own Python: no loop of it takes more; 0 where the tree has none."""
    children = _children(trace)
    roots = frames_of(trace, where, function)
    repeated = [
        node.total_ns
        for root in roots
        for node in children[root.node]
        if node.calls >= FEWEST_ROUNDS * root.calls
    ]
    return sum(root.self_ns for root in roots) + sum(repeated) if repeated else 0


def reading_ns(trace: RankReport, where: Located, function: str | None, *, reads: int) -> int:
    """What a function does only to read the elements of tensors one by one, with the reads and its own Python.

    It goes with the reads: cutting tensors into their elements, and every short call that is made as often as they are.

    Args:
        trace: with its call tree.
        where: the function begins.
        function: its name.
        reads: in the whole trace.
    """
    children = _children(trace)
    roots = frames_of(trace, where, function)
    calls = sum(root.calls for root in roots)
    if not calls or reads < FEWEST_ROUNDS * calls:
        return 0
    spent = sum(root.self_ns for root in roots)
    for top in (node for root in roots for node in children[root.node]):
        below = list(_subtree(top, children))
        operators = {node.name for node in below if node.kind == "cpu_op"}
        if operators and operators <= READING:
            spent += top.total_ns
        elif 2 * top.calls >= reads:
            spent += sum(node.self_ns for node in below if node.self_ns < short_ns(trace) * node.calls)
    return spent


def work_share(trace: RankReport, where: Located, function: str | None) -> Ratio | None:
    """The part of a function's operators, with those of functions that it calls, that is more than their dispatch for certain; null where unknown."""
    dispatch_ns = trace.launches.host.dispatch_ns
    operators = operators_below(trace, where, function)
    whole_ns = sum(node.self_ns for node in operators)
    if dispatch_ns is None or not whole_ns:
        return None
    return sum(max(0, node.self_ns - SURELY_WORK * dispatch_ns * node.calls) for node in operators) / whole_ns


def operators_below(trace: RankReport, where: Located, function: str | None) -> list[TreeNode]:
    """The operators of a function in the call tree, with those of functions that it calls."""
    children = _children(trace)
    below = (node for root in frames_of(trace, where, function) for node in _subtree(root, children))
    return [node for node in below if node.kind == "cpu_op"]


def frames_of(trace: RankReport, where: Located, function: str | None) -> list[TreeNode]:
    """The nodes of a function of the program in the call tree, one per way in which it is reached."""
    name = f"{where.file}({where.line}): {function}"
    return [node for node in trace.call_tree if node.kind == "python_function" and node.name == name]


def _children(trace: RankReport) -> dict[int | None, list[TreeNode]]:
    children: dict[int | None, list[TreeNode]] = defaultdict(list)
    for node in trace.call_tree:
        children[node.parent].append(node)
    return children


def _subtree(top: TreeNode, children: dict[int | None, list[TreeNode]]) -> Iterator[TreeNode]:
    yield top
    for node in children[top.node]:
        yield from _subtree(node, children)


def _moving_ns(trace: RankReport, names: set[str]) -> int:
    num_bytes = sum(point.num_bytes or 0 for point in trace.roofline if point.op in names)
    return round(num_bytes / SLOW_BYTES_PER_S * 1e9)
