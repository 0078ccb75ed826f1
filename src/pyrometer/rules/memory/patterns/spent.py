"""Which operators the user's functions spend their time in, as the user called them, from the call tree of a trace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.place import Place
from pyrometer.quantity import Ratio
from pyrometer.rules.rule import Case

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import LineTotal, TreeNode

_FUNCTION = re.compile(r"^(?P<file>.+\.py)\((?P<line>\d+)\): (?P<function>.+)$")


class Spent(NamedTuple):
    """Time of one kind of call in one function of the user's."""

    name: str
    """Operator or built-in function, such as aten::cat; what it calls in turn is counted with it."""
    function: Place
    """The function, at the line where it begins."""
    calls_per_step: float
    share: Ratio
    """Of the span of the trace: device time where there is a device, else host time."""
    node: int
    """The longest of its nodes in the call tree."""


def operators(case: Case) -> list[Spent]:
    """Outermost operators of the user's functions, the longest first; those of backward passes are nobody's."""
    trace = case.trace
    if trace is None:
        return []
    nodes = {node.node: node for node in trace.call_tree}
    chosen = [
        node
        for node in trace.call_tree
        if node.kind == "cpu_op" and not any(above.kind == "cpu_op" for above in _above(node, nodes))
    ]
    return _summed(case, chosen, nodes)


def whole_share(case: Case, names: Collection[str], function: Place | LineTotal) -> Ratio:
    """What operators of these names take of the span in a function as it called them, with all that they call in turn."""
    place = (function.file, function.line)
    found = [operator for operator in operators(case) if operator.name in names]
    return min(1.0, sum(one.share for one in found if (one.function.file, one.function.line) == place))


def calls_of(case: Case, pattern: str) -> list[Spent]:
    """Calls whose name in the call tree matches a regular expression, such as `<built-in .* collect`."""
    trace = case.trace
    if trace is None:
        return []
    nodes = {node.node: node for node in trace.call_tree}
    wanted = re.compile(pattern)
    tree_nodes = [
        node
        for node in trace.call_tree
        if wanted.search(node.name) and not any(wanted.search(above.name) for above in _above(node, nodes))
    ]
    return _summed(case, tree_nodes, nodes, on_host=True)


def has_device(trace: RankReport) -> bool:
    """Whether anything ran on a device."""
    return trace.device_busy_ns > 0


def _summed(
    case: Case, chosen: list[TreeNode], nodes: dict[int, TreeNode], *, on_host: bool = False
) -> list[Spent]:
    trace = case.trace
    assert trace is not None
    users = {(line.file, line.line) for line in trace.top_lines}
    groups: dict[tuple[str, Place], list[TreeNode]] = defaultdict(list)
    for node in chosen:
        function = next((place for above in _above(node, nodes) if (place := _users(above, users))), None)
        if function is not None:
            groups[node.name, function].append(node)
    device = has_device(trace) and not on_host

    def time_ns(node: TreeNode) -> int:
        return node.device_ns if device else node.total_ns

    found = [
        Spent(
            name=name,
            function=function,
            calls_per_step=sum(node.calls for node in group) / case.num_traced_steps,
            share=min(1.0, sum(map(time_ns, group)) / max(trace.span_ns, 1)),
            node=trace.call_tree.index(max(group, key=time_ns)),
        )
        for (name, function), group in groups.items()
    ]
    return sorted(found, key=lambda one: -one.share)


def _above(node: TreeNode, nodes: dict[int, TreeNode]) -> Iterator[TreeNode]:
    """The nodes above one, the nearest first."""
    parent = node.parent
    while parent is not None:
        above = nodes[parent]
        yield above
        parent = above.parent


def _users(node: TreeNode, users: set[tuple[str | None, int | None]]) -> Place | None:
    """The place of a node that is a function of the user's."""
    match = _FUNCTION.match(node.name) if node.kind == "python_function" else None
    if match is None or (match["file"], int(match["line"])) not in users:
        return None
    return Place(file=match["file"], line=int(match["line"]), function=match["function"])
