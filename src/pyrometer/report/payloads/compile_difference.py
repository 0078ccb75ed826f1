"""What changed in the graphs from one compilation of a program to another: the block `graphdiff`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Annotated, Literal

from pyrometer.compiler.fusion.record import FusedGroup
from pyrometer.compiler.graphs.labels import graph_title, shape_text
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.report import CompileDiff, CompileReport
from pyrometer.place import place_text
from pyrometer.record import Record, doc
from pyrometer.report.facts.compile_breaks import break_place
from pyrometer.report.facts.trace_words import short

MOST_COMPARED = 3_000
"""Operations of a graph above which it is not compared operation by operation."""

_AROUND = 3
"""Operations that are the same and are shown before and behind a change."""

MISSING = (
    "Graphs of the side before are not kept with this document: operations cannot be laid side by side. "
    "What both documents tell is compared below."
)

Sign = Literal["added", "removed", "changed", "same", "skipped"]


class OperationRow(Record, frozen=True, kw_only=True):
    """Operations that stand beside each other."""

    sign: Annotated[str, doc("added, removed, changed, same, or skipped: so many alike are not shown")]
    before: str = ""
    after: str = ""
    place: Annotated[str, doc("the user's line, of the side after if it has one")] = ""
    node: Annotated[str, doc("name in the graph after; empty if it is not there")] = ""
    count: int = 1


class PairedGraph(Record, frozen=True, kw_only=True):
    """A graph of one stage, before and after."""

    title: str
    before: Annotated[str, doc("which graph it was; empty if there was none")]
    after: Annotated[str, doc("which graph it is; empty if there is none")]
    added: int = 0
    removed: int = 0
    changed: int = 0
    rows: list[OperationRow] = []


class ChangeNote(Record, frozen=True, kw_only=True):
    """Something else that was added or removed."""

    sign: str
    what: Annotated[str, doc("break, recompilation or fused group")]
    text: str
    place: str = ""


class DifferenceContent(Record, frozen=True, kw_only=True):
    """What changed."""

    sentence: str
    graphs: list[PairedGraph] = []
    changes: list[ChangeNote] = []
    missing: Annotated[str, doc("why graphs are not compared; empty if they are")] = ""


def difference_content(
    report: CompileReport, diff: CompileDiff, before: Sequence[Graph] = ()
) -> DifferenceContent:
    """The block of a comparison.

    Args:
        report: of the side after.
        diff: what changed.
        before: graphs of the side before; without them only what `diff` holds is told.
    """
    return DifferenceContent(
        sentence=diff.sentence,
        graphs=compare_graphs(before, report.graph_records) if before else [],
        changes=list(_changes(diff)),
        missing="" if before else MISSING,
    )


def compare_graphs(before: Sequence[Graph], after: Sequence[Graph]) -> list[PairedGraph]:
    """Graphs of equal stages in their order, operation by operation; graphs without a partner stand alone."""
    graphs: list[PairedGraph] = []
    stages = dict.fromkeys(graph.stage for graph in (*before, *after))
    for stage in (one for one in stages if not one.startswith("before_")):  # copies of the stage before them
        old = [graph for graph in before if graph.stage == stage]
        new = [graph for graph in after if graph.stage == stage]
        graphs += [_paired(one, other) for one, other in zip_longest(old, new)]
    return [graph for graph in graphs if graph.added or graph.removed or graph.changed]


def _paired(old: Graph | None, new: Graph | None) -> PairedGraph:
    rows = list(_rows(_operations(old), _operations(new)))
    graph = new if new is not None else old
    return PairedGraph(
        title=graph_title(graph) if graph is not None else "",
        before=graph_title(old) if old is not None else "",
        after=graph_title(new) if new is not None else "",
        added=sum(row.sign == "added" for row in rows),
        removed=sum(row.sign == "removed" for row in rows),
        changed=sum(row.sign == "changed" for row in rows),
        rows=list(_near_changes(rows)),
    )


def _operations(graph: Graph | None) -> list[GraphNode]:
    nodes = [] if graph is None else graph.nodes
    return [node for node in nodes if node.op == "call" and node.target != "operator.getitem"][:MOST_COMPARED]


def _rows(old: Sequence[GraphNode], new: Sequence[GraphNode]) -> Iterator[OperationRow]:
    """An operation that stays but yields another type is changed; one that is another operation is not the same."""
    matcher = SequenceMatcher(
        None, [_text(node) for node in old], [_text(node) for node in new], autojunk=False
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from (_row("same", x, y) for x, y in zip(old[a:b], new[c:d], strict=True))
            continue
        inner = SequenceMatcher(
            None, [node.target for node in old[a:b]], [node.target for node in new[c:d]], autojunk=False
        )
        for kind, e, f, g, h in inner.get_opcodes():
            if kind == "equal":
                pairs = zip(old[a + e : a + f], new[c + g : c + h], strict=True)
                yield from (_row("changed", x, y) for x, y in pairs)
                continue
            yield from (_row("removed", node, None) for node in old[a + e : a + f])
            yield from (_row("added", None, node) for node in new[c + g : c + h])


def _row(sign: Sign, old: GraphNode | None, new: GraphNode | None) -> OperationRow:
    node = new if new is not None else old
    return OperationRow(
        sign=sign,
        before=_text(old) if old is not None else "",
        after=_text(new) if new is not None else "",
        place=place_text(node.file, node.line) if node is not None and node.file else "",
        node=new.name if new is not None else "",
    )


def _text(node: GraphNode) -> str:
    return f"{node.target} → {shape_text(node)}".removesuffix(" → ")


def _near_changes(rows: Sequence[OperationRow]) -> Iterator[OperationRow]:
    """Rows near a change; what lies farther off becomes one row that counts it."""
    near = set[int]()
    for place, row in enumerate(rows):
        if row.sign != "same":
            near.update(range(place - _AROUND, place + _AROUND + 1))
    hidden = 0
    for place, row in enumerate(rows):
        if place not in near:
            hidden += 1
            continue
        if hidden:
            yield OperationRow(sign="skipped", count=hidden)
            hidden = 0
        yield row
    if hidden:
        yield OperationRow(sign="skipped", count=hidden)


def _changes(diff: CompileDiff) -> Iterator[ChangeNote]:
    for sign, breaks in (("added", diff.breaks_added), ("removed", diff.breaks_removed)):
        for graph_break in breaks:
            yield ChangeNote(
                sign=sign, what="break", text=short(graph_break.reason, 160), place=break_place(graph_break)
            )
    for sign, recompiles in (("added", diff.recompiles_added), ("removed", diff.recompiles_removed)):
        for again in recompiles:
            names = ", ".join(change.name for change in again.changed_inputs)
            yield ChangeNote(
                sign=sign,
                what="recompilation",
                text=names or "no reason told",
                place=f"{place_text(again.file, again.line)} {again.function}".rstrip(),
            )
    for sign, groups in (("added", diff.fusions_added), ("removed", diff.fusions_removed)):
        for group in groups:
            yield ChangeNote(
                sign=sign,
                what="fused group",
                text=_group(group),
                place=", ".join(map(_near, group.places[:3])),
            )


def _near(place: str) -> str:
    file, _, line = place.rpartition(":")
    return place_text(file, int(line)) if line.isdigit() else place


def _group(group: FusedGroup) -> str:
    return short(", ".join(group.ops) or group.name, 160)
