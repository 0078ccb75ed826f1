"""`max_graph_breaks` and `max_recompiles`: what torch.compile makes of a program, counted."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch

from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.silence import silent_texts
from pyrometer.compiler.private.importing import import_compiler
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.wording import break_text, listed, recompile_text
from pyrometer.errors import InputError
from pyrometer.guard.pytest.program import place_of
from pyrometer.guard.pytest.result import ContractOutcome, ContractResult
from pyrometer.memory.profiling import runs_compiled
from pyrometer.quantity import counted
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

W = TypeVar("W", bound=Workload)

PAIRING_S = 0.1
"""For the comparison with eager steps, of which nothing is promised."""

STEPS = 10
MOST_NAMED = 5


def keeps_breaks(work: Workload, most: int) -> ContractResult:
    """Count the places at which a graph ends, without those that only follow from others.

    Raises:
        InputError: a negative limit.
        UserProgramError: a step raised, also without the compiler.
    """
    report = _inspected(work, "max_graph_breaks", most)
    breaks = [one for one in report.breaks if not one.chained]
    return _judged(
        "max_graph_breaks",
        work,
        report,
        (most, len(breaks), "graph break"),
        [break_text(one) for one in breaks],
    )


def keeps_recompiles(work: Workload, most: int) -> ContractResult:
    """Count recompilations over all inputs that the workload has.

    Raises:
        InputError: a negative limit.
        UserProgramError: a step raised, also without the compiler.
    """
    report = _inspected(work, "max_recompiles", most)
    texts = [recompile_text(one) for one in report.recompiles]
    return _judged("max_recompiles", work, report, (most, len(texts), "recompile"), texts)


def _inspected(work: Workload, contract: str, most: int) -> CompileReport:
    if most < 0 or int(most) != most:
        raise InputError(f"{contract}: got {most!r}; a limit is a whole number of 0 or more")
    import_compiler()
    torch._dynamo.reset()  # noqa: SLF001 - or what an earlier test compiled is not seen, and counts as a first compilation
    report = inspect_compile(_behind_dynamo(work), steps=STEPS, budget_s=PAIRING_S)
    if report.interrupted:
        raise KeyboardInterrupt
    return report


def _behind_dynamo(work: W) -> W:
    """A workload that compiles nothing, behind Dynamo: breaks and recompilations are its own, whatever makes code of the graphs."""
    if runs_compiled(work) or not isinstance(work, (Inference, Training)):
        return work
    behind: Any = copy.copy(work)
    if isinstance(work, Training):
        compiled: Any = torch.compile(work.parts.model, backend="eager")
        behind.parts = work.parts._replace(model=compiled)
    else:
        behind.model = torch.compile(work.model, backend="eager")
    return behind  # type: ignore[no-any-return]


def _judged(
    contract: str, work: Workload, report: CompileReport, figures: tuple[int, int, str], offenders: list[str]
) -> ContractResult:
    most, number, noun = figures
    silent = silent_texts(report.runtime.silent_eager if report.runtime is not None else [])
    outcome: ContractOutcome = "kept" if number <= most else "broken"
    reason = None
    if report.failure is not None:
        outcome, reason = "refused", f"compiled, the program fails: {report.failure}"
    elif not report.graphs:
        outcome, reason = "refused", "no graph was compiled, so that none can break or be compiled again"
    elif number <= most and silent:
        outcome, reason = "refused", f"calls ran eagerly in silence: {listed(silent)}"
    elif number <= most and report.incomplete:
        outcome, reason = (
            "undecided",
            f"compiled before, in a way that cannot be told: {listed(report.incomplete)}",
        )
    return ContractResult(
        contract=contract,
        workload=work.name,
        outcome=outcome,
        promised=f"at most {counted(most, noun)}",
        measured=f"{counted(number, noun)} in {counted(report.graphs, 'graph')}",
        limit=most,
        value=number,
        unit=f"{noun}s",
        reason=reason,
        where=[*(offenders[:MOST_NAMED] or place_of(work))],
        advice="print(pm.inspect_compile(work)) says how to write what breaks"
        if outcome == "broken"
        else None,
    )
