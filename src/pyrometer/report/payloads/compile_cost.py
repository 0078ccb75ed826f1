"""What compiling cost, phase by phase, and why frames were compiled again: the block `compile`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from pyrometer.compiler.costs.phase_names import ORDER
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.recompiles.record import LimitReached, Recompile, RecompileCause
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.stack import own_name
from pyrometer.place import file_name
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.report.chapters.compile import REST, REST_SLOT, phase_slots
from pyrometer.report.facts.trace_words import short

_VALUE = re.compile(r"((?:==|!=|<=|>=|<|>|\bexpected|\bactual)\s*)-?\d+(?:\.\d+)?")
_MOST_GUARDS = 12
_MOST_COLUMNS = 40


class CompilationRow(Record, frozen=True, kw_only=True):
    """One compilation."""

    compile_id: str
    function: str
    place: str
    outcome: str
    reason: str = ""
    total_s: Seconds | None
    backward_s: Seconds | None = None
    phases_s: Annotated[list[float], doc("in the order of the phases")]
    cache: str
    spared_s: Annotated[Seconds | None, doc("compile time that hits of the caches spared, as torch says")] = (
        None
    )
    is_resume: bool = False
    num_ops: int | None = None
    attempts: Annotated[
        int, doc("times that it was traced; a break or an open size met on the way starts anew")
    ] = 1


class GuardRow(Record, frozen=True, kw_only=True):
    """A guard that failed, its values left out."""

    guard: str
    kind: str
    failed: Annotated[list[int], doc("columns at which it was the first to fail")]
    also: Annotated[list[int], doc("columns at which it failed behind another one")]
    said: Annotated[list[str], doc("in torch's words, of each column in `failed`, then of each in `also`")]


class SeenValues(Record, frozen=True, kw_only=True):
    """Values of an input or attribute that was different."""

    name: str
    kind: str
    values: Annotated[list[str], doc("in the order in which they were met")]
    became_dynamic: bool = False


class RecompiledFrame(Record, frozen=True, kw_only=True):
    """A frame that was compiled more than once."""

    frame: str
    function: str
    place: str
    columns: Annotated[list[str], doc("the compilations behind the first one")]
    refused: Annotated[int, doc("the column that hit the recompile limit; -1 if none")] = -1
    guards: list[GuardRow]
    seen: list[SeenValues]
    compile_s: Annotated[list[float | None], doc("of each column; null where it is unknown, or was refused")]
    left_out: Annotated[int, doc("guards, and compilations, that there is no room for")] = 0


class CompileContent(Record, frozen=True, kw_only=True):
    """What compiling cost."""

    phases: Annotated[list[str], doc("the longest phases in the order of compiling, then all others as one")]
    totals_s: list[float]
    slots: Annotated[list[int], doc("colour of each phase, as everywhere on the page")]
    compile_s: Seconds
    background: Annotated[dict[str, float], doc("seconds on compile threads, beside the program")] = {}
    cache: Annotated[str, doc("warm, cold, mixed or unused")]
    hits: int
    misses: int
    compilations: list[CompilationRow]
    frames: list[RecompiledFrame]


def compile_content(report: CompileReport) -> CompileContent | None:
    """The block `compile`; `None` where nothing was compiled."""
    if not report.compilations and not report.cost.phases_s and not report.recompiles:
        return None
    held = {name for compilation in report.compilations for name in compilation.phases_s} | set(
        report.cost.phases_s
    )
    slots = phase_slots(report.cost.phases_s)
    phases = [name for name in ORDER if name in slots] + sorted(set(slots) - set(ORDER))
    phases += [REST] if held - set(slots) else []
    return CompileContent(
        phases=phases,
        slots=[slots.get(name, REST_SLOT) for name in phases],
        totals_s=_seconds(report.cost.phases_s, phases),
        compile_s=report.cost.compile_s,
        background=report.cost.background_s,
        cache=report.cache.state,
        hits=report.cache.hits,
        misses=report.cache.misses,
        compilations=[_row(compilation, phases, report) for compilation in report.compilations],
        frames=recompiled_frames(report),
    )


def recompiled_frames(report: CompileReport) -> list[RecompiledFrame]:
    """The frames that were compiled again, the one with the most compilations first."""
    frames: dict[str, list[Recompile]] = {}
    for recompile in report.recompiles:
        frames.setdefault(recompile.compile_id.rpartition("/")[0], []).append(recompile)
    limits = {limit.compile_id.rpartition("/")[0]: limit for limit in report.limits if limit.compile_id}
    found = [_frame(frame, again, limits.get(frame)) for frame, again in frames.items()]
    return sorted(found, key=lambda frame: -len(frame.columns))


def _seconds(phases_s: Mapping[str, Seconds], phases: Sequence[str]) -> list[Seconds]:
    """Of each phase; those that have no place of their own together.

    >>> _seconds({"guards": 2.0, "a": 0.5, "b": 0.25}, ["guards", REST])
    [2.0, 0.75]
    """
    rest = sum(spent for name, spent in phases_s.items() if name not in phases)
    return [rest if name == REST else phases_s.get(name, 0.0) for name in phases]


def _row(compilation: Compilation, phases: Sequence[str], report: CompileReport) -> CompilationRow:
    spared = [
        event.saved_s
        for event in report.cache.events
        if event.compile_id == compilation.compile_id and event.outcome == "hit" and event.saved_s is not None
    ]
    return CompilationRow(
        compile_id=compilation.compile_id,
        function=own_name(compilation.function),
        place=_place(compilation.file, compilation.line),
        outcome=compilation.outcome,
        reason=short(compilation.reason, 160),
        total_s=compilation.total_s,
        backward_s=compilation.backward_s,
        phases_s=_seconds(compilation.phases_s, phases),
        cache=compilation.cache,
        spared_s=sum(spared) if spared else None,
        is_resume=compilation.is_resume,
        num_ops=compilation.num_ops,
        attempts=compilation.attempts,
    )


def _frame(frame: str, again: Sequence[Recompile], limit: LimitReached | None) -> RecompiledFrame:
    causes = [(recompile.compile_id, recompile.causes) for recompile in again]
    refused = -1
    if limit is not None:
        refused = len(causes)
        causes.append((limit.compile_id, limit.causes))
    guards = _guards([held for _, held in causes[:_MOST_COLUMNS]])
    took = [recompile.compile_s for recompile in again] + ([None] if limit is not None else [])
    return RecompiledFrame(
        frame=frame,
        function=own_name(again[0].function),
        place=_place(again[0].file, again[0].line),
        columns=[compile_id for compile_id, _ in causes[:_MOST_COLUMNS]],
        refused=refused if refused < _MOST_COLUMNS else -1,
        guards=guards[:_MOST_GUARDS],
        seen=_seen(again),
        compile_s=took[:_MOST_COLUMNS],
        left_out=max(len(guards) - _MOST_GUARDS, 0) + max(len(causes) - _MOST_COLUMNS, 0),
    )


def _guards(columns: Sequence[Sequence[RecompileCause]]) -> list[GuardRow]:
    """Guards without their values, the one that fails most often first."""
    first: dict[str, dict[int, str]] = {}
    also: dict[str, dict[int, str]] = {}
    kinds: dict[str, str] = {}
    for column, causes in enumerate(columns):
        for cause in causes:
            name = without_values(cause.guard)
            kinds.setdefault(name, cause.kind)
            first.setdefault(name, {}).setdefault(column, cause.guard)
            for guard in cause.all_failing:
                also.setdefault(without_values(guard), {}).setdefault(column, guard)
    rows = []
    for name in dict.fromkeys([*first, *also]):
        failed = first.get(name, {})
        behind = {column: said for column, said in also.get(name, {}).items() if column not in failed}
        rows.append(
            GuardRow(
                guard=short(name, 160),
                kind=kinds.get(name, ""),
                failed=list(failed),
                also=list(behind),
                said=[short(said, 200) for said in (*failed.values(), *behind.values())],
            )
        )
    return sorted(rows, key=lambda row: (-len(row.failed), -len(row.also)))


def without_values(guard: str) -> str:
    """A guard whose compared values are left out, so that one and the same guard is recognised.

    >>> without_values("tensor 'x' size mismatch at index 0. expected 4, actual 7")
    "tensor 'x' size mismatch at index 0. expected …, actual …"
    """
    return _VALUE.sub(r"\1…", guard)


def _seen(again: Sequence[Recompile]) -> list[SeenValues]:
    values: dict[tuple[str, str], dict[str, None]] = {}
    dynamic: set[tuple[str, str]] = set()
    for recompile in again:
        for change in recompile.changed_inputs:
            key = (change.name, change.kind)
            values.setdefault(key, {}).update(dict.fromkeys([*change.before, change.after]))
            if change.became_dynamic:
                dynamic.add(key)
    return [
        SeenValues(name=name, kind=kind, values=list(held)[:50], became_dynamic=(name, kind) in dynamic)
        for (name, kind), held in values.items()
    ]


def _place(file: str, line: int) -> str:
    return f"{file_name(file)}:{line}" if file else ""
