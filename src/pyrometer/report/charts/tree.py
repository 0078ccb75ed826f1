"""Laying out a merged call tree as an icicle: the boxes, and what each says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyrometer.quantity import format_seconds
from pyrometer.report.charts.icicle import Box
from pyrometer.report.facts.layout import percent
from pyrometer.trace.reporting.totals import TreeNode

SLOTS = {
    "thread": 5,
    "python_function": 9,
    "user_annotation": 11,
    "module": 10,
    "cpu_op": 4,
    "runtime": 8,
    "driver": 8,
    "kernel": 2,
    "memcpy": 1,
    "memset": 7,
    "other": 5,
}
"""Colour of each kind of node."""

FUNCTION = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)")

OWN_FRAME = re.compile(r"^(pyrometer|click)/|/src/pyrometer/|_pyrometer_inside/|^torch/profiler/")
"""Functions of this tool, of what starts it and of the profiler, which run around the program and within it."""

WRAPPER = re.compile(r"(^|/)torch/nn/modules/module\.py\(\d+\): ")
"""What calls a module's `forward`: a row of its own for each would say nothing."""

FRAMES = frozenset({"thread", "trace", "python_function", "user_annotation"})

DEEPEST = 16
CHAIN = 0.995
"""A node whose only large child takes this share of it is drawn as that child: it has nothing of its own to show."""


def boxes(nodes: Sequence[TreeNode], *, device: bool, slots: Mapping[str, int] = SLOTS) -> list[Box]:
    """Place the nodes: siblings from the largest to the smallest, each as wide as its share of the root.

    Args:
        nodes: parents before their children, the root first.
        device: weigh by device time instead of host time.
        slots: colour of each kind; that of `other` is for all that have none.
    """
    if not nodes:
        return []
    weight = {node.node: node.device_ns if device else node.total_ns for node in nodes}
    below = _shown_below(nodes)
    for siblings in below.values():
        siblings.sort(key=lambda node: -weight[node.node])
    whole = max(weight[nodes[0].node], 1)
    made: list[Box] = []
    waiting = [(nodes[0], 0, 0.0)]
    while waiting:
        node, depth, start = waiting.pop()
        drawn, node = _chain(node, below, weight)
        share = weight[node.node] / whole
        if not share or depth >= DEEPEST:
            continue
        box = _box(drawn, depth, start, share, weight[node.node])
        kind = "module" if is_module(drawn) and "module" in slots else drawn.kind
        made.append(box._replace(slot=slots.get(kind, slots["other"])))
        for child in below.get(node.node, []):
            waiting.append((child, depth + 1, start))
            start += weight[child.node] / whole
    return made


def _shown_below(nodes: Sequence[TreeNode]) -> dict[int | None, list[TreeNode]]:
    """The nodes to draw, by the one to draw them below: what measures is not part of the program."""
    stands_for: dict[int | None, int | None] = {}
    below: dict[int | None, list[TreeNode]] = {}
    for node in nodes:
        above = stands_for.get(node.parent)
        outside = OWN_FRAME.search(node.name) or WRAPPER.search(node.name)
        hidden = node.kind == "python_function" and outside is not None
        stands_for[node.node] = above if hidden else node.node
        if not hidden:
            below.setdefault(above, []).append(node)
    return below


def _chain(
    node: TreeNode, below: Mapping[int | None, list[TreeNode]], weight: Mapping[int, int]
) -> tuple[TreeNode, TreeNode]:
    """The node that is drawn for a chain of calls, and its end: the innermost module, else the end; operators stay apart of frames."""
    module = node if is_module(node) else None
    while True:
        children = below.get(node.node, [])
        if not children or weight[children[0].node] < CHAIN * weight[node.node]:
            return module or node, node
        if (node.kind in FRAMES) != (children[0].kind in FRAMES):
            return module or node, node
        node = children[0]
        module = node if is_module(node) else module


def is_module(node: TreeNode) -> bool:
    """Whether a node is a call of a module, as the profiler or our own capture marks it."""
    return node.name.startswith(("nn.Module: ", "module:"))


def _box(node: TreeNode, depth: int, start: float, share: float, value_ns: int) -> Box:
    said = format_seconds(value_ns * 1e-9)
    title = f"{node.name}: {said}, {percent(share)}, {node.calls:,} calls ({node.kind})"
    return Box(depth, start, share, label(node.name), title, SLOTS.get(node.kind, 5))


def label(name: str) -> str:
    """A name as it fits a box: of a Python function its name first, then file and line.

    >>> label("models/vit.py(59): forward"), label("nn.Module: Linear_0"), label("aten::mm")
    ('forward  vit.py:59', 'Linear_0', 'aten::mm')
    """
    match = FUNCTION.fullmatch(name)
    if match is not None:
        return f"{match['function']}  {match['file'].rpartition('/')[2]}:{match['line']}"
    return name.removeprefix("nn.Module: ").removeprefix("module:").removeprefix("phase:")
