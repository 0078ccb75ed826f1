"""Trying what is advised: the rewrites are carried out in memory, and what they bring is measured."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.matrix.numerics import output_error, with_fixed_inputs
from pyrometer.compiler.advice.record import RewriteTrial
from pyrometer.compiler.advice.swapping import Swap, prepare_rewrites
from pyrometer.compiler.breaks.read import read_breaks
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.inspection.accuracy import tolerance_of
from pyrometer.compiler.inspection.candidates import compiled_candidates
from pyrometer.compiler.inspection.eager import forced_eager
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import user_code
from pyrometer.workload.workload import Session, Workload

W = TypeVar("W", bound=Workload)


def try_rewrites(
    work: Workload, report: CompileReport, *, mode: str | None = None, budget_s: Seconds = 10.0
) -> RewriteTrial:
    """Carry out the advised rewrites in memory, compile again, and compare with the program as it is written.

    Nothing is written to files, and every function has its own code back at the end. Rewrites that may change what is
    computed in meaning are left out; of the rest one is tried per break.

    Args:
        work: what the report is of.
        report: with breaks and their advice.
        mode: of torch.compile, as for the report.
        budget_s: time for the comparison; compiling does not count.
    """
    roots = [graph_break for graph_break in report.breaks if not graph_break.chained]
    prepared = prepare_rewrites(roots)
    trial = RewriteTrial(rewrites=prepared.tried, breaks_before=len(roots), skipped=prepared.skipped)
    if not prepared.tried:
        return replace(trial, failure="no break has a rewrite that is sure enough to be tried")
    try:
        compiled, after = _compiled_anew(work, mode, prepared.swap)
        fixed = with_fixed_inputs(compiled)
        error = output_error(with_code(fixed, prepared.swap), forced_eager(fixed), tolerance_of(compiled))
        verdict = compare(compiled, with_code(compiled, prepared.swap), budget_s=budget_s)
    except PyrometerError as failure:
        return replace(trial, failure=str(failure))
    untouched = [root for root in roots if (root.file, root.function) not in prepared.swap.functions]
    return replace(trial, breaks_after=len(_places(after) | _places(untouched)), error=error, verdict=verdict)


def _compiled_anew(work: Workload, mode: str | None, swap: Swap) -> tuple[Workload, list[Break]]:
    """The work as it is compiled, and the root breaks of its first step with the rewrites.

    Of functions that are not rewritten nothing is told: they were compiled before.
    """
    breaks, candidate = list[Break](), work
    for candidate in compiled_candidates(work, mode):
        rewritten = with_code(candidate, swap)
        with collect() as collector, rewritten.open() as session, user_code("the rewritten program"):
            session.activate()
            session.step(session.prepare())
        breaks = [graph_break for graph_break in read_breaks(collector.log()) if not graph_break.chained]
        if collector.log().compile_ids():
            break
    return candidate, breaks


def with_code(work: W, swap: Swap) -> W:
    """The same work, whose steps run with other code in some functions; between its steps they have their own."""
    other = copy.copy(work)

    @contextlib.contextmanager
    def opened() -> Iterator[Session]:
        with work.open() as session:
            own = session.step

            def step(prepared: Any) -> Any:
                with swap:
                    return own(prepared)

            session.step = step  # type: ignore[method-assign] # the session stays what it is in every other way
            yield session

    other.open = opened  # type: ignore[method-assign] # so does the work
    return other


def _places(breaks: list[Break]) -> set[tuple[str, str, str]]:
    return {
        (graph_break.file, graph_break.function, graph_break.source or str(graph_break.line))
        for graph_break in breaks
    }
