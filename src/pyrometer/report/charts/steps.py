"""Compile time nested, as the page shows it without its script and on paper."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.stack import own_name
from pyrometer.report.charts.icicle import icicle
from pyrometer.report.charts.tree import boxes
from pyrometer.trace.reporting.totals import TreeNode

WHOLE, COMPILATION = "whole", "compilation"
NARROWEST = 0.002
"""Narrower boxes could not be seen."""


def steps_chart(report: CompileReport, slots: Mapping[str, int], rest: int, whole: int) -> Markup | None:
    """Each step of the compiler inside of the one around it; `None` where no nesting is known.

    Args:
        report: its costs hold the nested steps.
        slots: colours of phases, as everywhere on the page.
        rest: the colour of all other phases.
        whole: the colour of compilations, and of all of them together.
    """
    colours = {**slots, "other": rest, WHOLE: whole, COMPILATION: whole}
    placed = [box for box in boxes(_nodes(report), device=False, slots=colours) if box.width >= NARROWEST]
    if placed:
        return icicle(placed, "Inside the compiler: each box is as wide as its share of the time")
    return None


def _nodes(report: CompileReport) -> list[TreeNode]:
    tree = report.cost.tree
    if tree is None or not tree.parent:
        return []
    functions = {
        compilation.compile_id: f"{compilation.compile_id} {own_name(compilation.function)}"
        for compilation in report.compilations
    }
    total_s = list(tree.own_s)
    for row in reversed(range(len(total_s))):
        if tree.parent[row] >= 0:
            total_s[tree.parent[row]] += total_s[row]
    whole_s = sum(spent for spent, parent in zip(total_s, tree.parent, strict=True) if parent < 0)
    nodes = [_node(0, None, "all compilations", WHOLE, calls=1, total_s=whole_s)]
    for row, above in enumerate(tree.parent):
        name, phase = tree.names[tree.name[row]], tree.phase[row]
        title = functions.get(name, name) if phase < 0 else name
        kind = tree.phases[phase] if phase >= 0 else COMPILATION
        nodes.append(_node(row + 1, above + 1, title, kind, calls=tree.calls[row], total_s=total_s[row]))
    return nodes


def _node(node: int, parent: int | None, name: str, kind: str, *, calls: int, total_s: float) -> TreeNode:
    return TreeNode(
        node=node, parent=parent, name=name, kind=kind, calls=calls, total_ns=round(total_s * 1e9),
        self_ns=0, device_ns=0, depth=0,
    )  # fmt: skip
