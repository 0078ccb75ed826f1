"""What torch.compile does in a script that is run as it is: in a process of its own, with torch's own trace switched on."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from pyrometer.compiler.build import build_report
from pyrometer.compiler.collecting.files import read_logs
from pyrometer.compiler.inspecting.ranks import compare_ranks, rank_of
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import Seconds
from pyrometer.workload.script.observe import observe
from pyrometer.workload.script.observed import ObservedScript

TORCH_TRACE = "TORCH_TRACE"
NOTHING = "the script compiled nothing: no torch.compile was reached, or this torch wrote no trace"


class InspectedScript(NamedTuple):
    """A script that has run: its report, what was seen of its steps, and where its ranks differ."""

    report: CompileReport
    observed: ObservedScript
    log: CompileLog
    """That the report is of."""
    divergence: list[str]
    """Where other ranks or processes decided differently."""


def inspect_script(
    argv: list[str], *, python: str = sys.executable, timeout_s: Seconds | None = None, strict: bool = False
) -> InspectedScript:
    """Run a script unchanged, and report what was compiled in it.

    The report is of rank 0, or of the process that compiled first. Files that the user's own TORCH_TRACE asks for are
    written, too.

    Args:
        argv: the script and its arguments.
        python: the interpreter to run it with.
        timeout_s: end it after so long; what was seen until then is kept.
        strict: let exceptions of the readers pass, for tests.

    Raises:
        TargetError: the script is missing, not a file, or not Python source text.
        InputError: the interpreter cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="pyrometer-", ignore_cleanup_errors=True) as folder:
        script = observe(argv, python=python, timeout_s=timeout_s, environment={TORCH_TRACE: folder})
        _hand_on(Path(folder), os.environ.get(TORCH_TRACE))
        logs = _compiled(read_logs(folder)) if any(Path(folder).iterdir()) else []
    log = logs[0] if logs else CompileLog(())
    notes = list(script.notes) if logs else [*script.notes, NOTHING]
    divergence = compare_ranks(logs)
    if len(logs) > 1:
        notes.append(f"{len(logs)} processes compiled something: this is the report of the first")
        notes += divergence
    report = build_report(
        log,
        first_call_s=script.first_step_s,
        steady_s=_steady_s(script),
        notes=notes,
        unavailable=["eager step time and numerics: a script runs once, as it is"],
        strict=strict,
    )
    return InspectedScript(report, script, log, divergence)


def _compiled(logs: list[CompileLog]) -> list[CompileLog]:
    """The logs in which something was compiled, by rank, then by their first entry."""
    told = [log for log in logs if log.compile_ids()]
    return sorted(told, key=lambda log: (_rank_order(log), log.entries[0].time_ns))


def _rank_order(log: CompileLog) -> float:
    rank = rank_of(log)
    return float("inf") if rank is None else rank


def _steady_s(script: ObservedScript) -> Seconds | None:
    """Median of the second half of the steps: compilation lies in the first ones."""
    steps = [each * 1e-9 for each, regular in zip(script.step_ns, script.regular, strict=False) if regular]
    half = steps[len(steps) // 2 :]
    return statistics.median(half) if len(steps) > 1 else None


def _hand_on(folder: Path, users: str | None) -> None:
    """Copy the files to where the user's own TORCH_TRACE wants them."""
    if users is None:
        return
    Path(users).mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        shutil.copy2(file, users)
