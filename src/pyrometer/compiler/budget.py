"""Limits for what torch.compile may do to a program, to be kept in a test or in CI."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

from pyrometer.compiler.inspection.silence import silent_texts
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.wording import break_text, frame_text, headline, listed, recompile_text
from pyrometer.errors import BudgetExceededError, InputError
from pyrometer.quantity import Seconds, counted, format_seconds
from pyrometer.record import Record, doc


class CompileBudget(Record, frozen=True, kw_only=True):
    """What is allowed at most; null allows anything.

    Raises:
        InputError: a limit is negative, not finite, or there is none at all.
    """

    max_graph_breaks: Annotated[
        int | None, doc("places at which a graph ends, without those that only follow")
    ] = None
    max_recompiles: int | None = None
    max_compile_s: Annotated[Seconds | None, doc("time in which the program waited for the compiler")] = None
    max_graphs: Annotated[int | None, doc("compiled graphs, over all compilations")] = None
    max_skipped_frames: Annotated[
        int | None,
        doc(
            "functions that were given up and run eagerly, those included whose calls fit no compilation and run eagerly in "
            "silence; without this limit none of the latter is allowed"
        ),
    ] = None

    def __post_init__(self) -> None:
        limits = {name: getattr(self, name) for name in self.__struct_fields__}
        for name, limit in limits.items():
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise InputError(f"{name}={limit}: a limit is 0 or more; leave it out to allow anything")
        if all(limit is None for limit in limits.values()):
            raise InputError(f"a budget needs a limit; set one of {', '.join(limits)}")


def check_budget(report: CompileReport, budget: CompileBudget) -> list[str]:
    """One sentence for each limit that is not kept; empty when all are.

    What was not compiled cannot keep a limit: functions that run eagerly in silence count as skipped frames, under any limit.
    Nor is a limit kept that cannot be told, as when something was compiled before the recording.

    Args:
        report: what torch.compile did.
        budget: what it may do.

    Returns:
        Sentences such as `2 graph breaks, 0 allowed: model.py:41 (gb0170 Data-dependent branching), …`.
    """
    roots = [graph_break for graph_break in report.breaks if not graph_break.chained]
    found = [
        _over("graph break", len(roots), budget.max_graph_breaks, map(break_text, roots)),
        _over(
            "recompile", len(report.recompiles), budget.max_recompiles, map(recompile_text, report.recompiles)
        ),
        _over("graph", report.graphs, budget.max_graphs, _graph_texts(report)),
        _over_skipped(report, budget.max_skipped_frames),
        _over_time(report, budget.max_compile_s),
        _untold(report),
    ]
    return [sentence for sentence in found if sentence]


def assert_compile_budget(
    report: CompileReport,
    *,
    max_graph_breaks: int | None = None,
    max_recompiles: int | None = None,
    max_compile_s: Seconds | None = None,
    max_graphs: int | None = None,
    max_skipped_frames: int | None = None,
) -> None:
    """Fail where `check_budget` finds anything; the error is an `AssertionError` too.

    Args:
        report: what torch.compile did.
        max_graph_breaks: as in `CompileBudget`, like the others.
        max_recompiles: recompilations.
        max_compile_s: seconds that the program waited for the compiler.
        max_graphs: compiled graphs.
        max_skipped_frames: functions that run eagerly.

    Raises:
        BudgetExceededError: a limit is not kept; a line for each.
        InputError: a limit is negative, or there is none.
    """
    budget = CompileBudget(
        max_graph_breaks=max_graph_breaks,
        max_recompiles=max_recompiles,
        max_compile_s=max_compile_s,
        max_graphs=max_graphs,
        max_skipped_frames=max_skipped_frames,
    )
    found = check_budget(report, budget)
    if found:
        raise BudgetExceededError("\n".join(found))


def _over(noun: str, number: int, limit: int | None, offenders: Iterable[str]) -> str:
    if limit is None or number <= limit:
        return ""
    named = listed(offenders)
    return f"{counted(number, noun)}, {limit} allowed" + (f": {named}" if named else "")


def _over_skipped(report: CompileReport, limit: int | None) -> str:
    silent = report.runtime.silent_eager if report.runtime is not None else []
    texts = silent_texts(silent)
    if limit is None:
        return _over("function that ran eagerly in silence", len(texts), 0, texts)
    skips = [f"{frame_text(skip)} ({headline(skip.reason)})" for skip in report.skips]
    return _over("skipped frame", report.skipped_frames + len(texts), limit, [*skips, *texts])


def _untold(report: CompileReport) -> str:
    if not report.incomplete:
        return ""
    verb = "was" if len(report.incomplete) == 1 else "were"
    return (
        f"cannot be told: {listed(report.incomplete)} {verb} compiled before the recording; inspect it in a fresh process, "
        "or after torch._dynamo.reset()"
    )


def _over_time(report: CompileReport, limit: Seconds | None) -> str:
    took = report.cost.compile_s
    if limit is None or took <= limit:
        return ""
    timed = [(compilation.total_s, compilation) for compilation in report.compilations if compilation.total_s]
    slowest = sorted(timed, key=lambda pair: -pair[0])
    named = [f"{frame_text(compilation)} {format_seconds(took_s)}" for took_s, compilation in slowest]
    return f"{format_seconds(took)} of compiling, {format_seconds(limit)} allowed" + (
        f": {listed(named, 3)}" if named else ""
    )


def _graph_texts(report: CompileReport) -> list[str]:
    """The functions that have most graphs."""
    counts: dict[str, int] = {}
    for compilation in report.compilations:
        if compilation.outcome == "compiled":
            where = frame_text(compilation)
            counts[where] = counts.get(where, 0) + 1
    return [f"{where} has {counts[where]}" for where in sorted(counts, key=lambda name: -counts[name])]
