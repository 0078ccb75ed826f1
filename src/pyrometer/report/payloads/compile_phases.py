"""Compile time nested, as the call tree's drawing reads it: the block `phases`."""

from __future__ import annotations

from typing import Annotated

from pyrometer.compiler.costs.record import PhaseTree
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.stack import own_name
from pyrometer.quantity import counted
from pyrometer.record import Record, doc
from pyrometer.report.chapters.compile import REST_SLOT, WHOLE_SLOT, phase_slots
from pyrometer.report.facts.trace_words import short_path

COMPILATION = "compilation"
WHOLE = "trace"
"""Kind of the first row, which is not drawn."""


class StepColumns(Record, frozen=True, kw_only=True):
    """Rows, each behind the one around it."""

    parent: list[int]
    name: Annotated[list[int], doc("row of names")]
    kind: Annotated[list[int], doc("row of kinds")]
    calls: list[int]
    self_ns: list[int]
    device_self_ns: Annotated[list[int], doc("none: compiling is the host's work")]


class PhasesContent(Record, frozen=True, kw_only=True):
    """All that the program waited for the compiler, compilation by compilation."""

    path: Annotated[str, doc("what the whole is called")]
    names: list[str]
    kinds: Annotated[list[str], doc("phases; compilation for a whole one")]
    slots: Annotated[list[int], doc("colour of each kind, as everywhere on the page")]
    rest: Annotated[int, doc("the colour that all phases share which have none of their own")]
    calls: StepColumns
    notice: str


def phases_content(report: CompileReport) -> PhasesContent | None:
    """The block `phases`; `None` where no nesting is known."""
    tree = report.cost.tree
    if tree is None or not tree.parent:
        return None
    kinds = [WHOLE, COMPILATION, *tree.phases]
    names = ["all compilations", *_titles(tree, report)]
    slots = {WHOLE: WHOLE_SLOT, COMPILATION: WHOLE_SLOT, **phase_slots(report.cost.phases_s)}
    return PhasesContent(
        path=names[0],
        names=names,
        kinds=kinds,
        slots=[slots.get(kind, REST_SLOT) for kind in kinds],
        rest=REST_SLOT,
        calls=StepColumns(
            parent=[-1, *(parent + 1 for parent in tree.parent)],
            name=[0, *(name + 1 for name in tree.name)],
            kind=[0, *(phase + 2 if phase >= 0 else 1 for phase in tree.phase)],
            calls=[0, *tree.calls],
            self_ns=[0, *(round(own_s * 1e9) for own_s in tree.own_s)],
            device_self_ns=[0] * (len(tree.parent) + 1),
        ),
        notice=f"Without a box of their own: {counted(tree.left_out, 'short step')}."
        if tree.left_out
        else "",
    )


def _titles(tree: PhaseTree, report: CompileReport) -> list[str]:
    """The names, those of compilations with their function."""
    known = {compilation.compile_id: compilation for compilation in report.compilations}
    compilations = {name for name, phase in zip(tree.name, tree.phase, strict=True) if phase < 0}
    titles = []
    for number, name in enumerate(tree.names):
        one = known.get(name) if number in compilations else None
        place = f"{short_path(one.file)}:{one.line}" if one is not None and one.file else ""
        titles.append(
            " ".join(part for part in (name, own_name(one.function), place) if part) if one else name
        )
    return titles
