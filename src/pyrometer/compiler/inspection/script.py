"""What torch.compile does in a script that is run as it is: in a process of its own, with torch's own trace switched on."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyrometer.compiler.build import build_report
from pyrometer.compiler.collecting.files import read_logs
from pyrometer.compiler.costs.spans import read_spans, waited_for
from pyrometer.compiler.inspection.ranks import compare_ranks, rank_of
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import Seconds, counted
from pyrometer.workload.script.observe import observe
from pyrometer.workload.script.observed import ObservedScript

TORCH_TRACE = "TORCH_TRACE"
FEWEST_STEPS = 2
NOTHING = "the script compiled nothing: no torch.compile was reached, or this torch wrote no trace"


class InspectedScript(NamedTuple):
    """A script that has run: its report, what was seen of its steps, and where its ranks differ."""

    report: CompileReport
    observed: ObservedScript
    log: CompileLog
    """That the report is of."""
    divergence: list[str]
    """Where other ranks or processes decided differently."""


def inspect_script(argv: list[str], *, strict: bool = False) -> InspectedScript:
    """Run a script unchanged, and report what was compiled in it.

    The report is of rank 0, or of the process that compiled first. Files that the user's own TORCH_TRACE asks for are
    written, too.

    Args:
        argv: the script and its arguments.
        strict: let exceptions of the readers pass, for tests.

    Raises:
        TargetError: the script is missing, not a file, or not Python source text.
    """
    with trace_folder() as folder:
        script = observe(argv, environment=folder.environment)
        return report_script(script, folder, strict=strict)


class TraceFolder:
    """Where the processes of a script write torch's own trace, given its `environment`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started_ns = time.time_ns()
        self.environment = {TORCH_TRACE: str(path)}

    def logs(self) -> list[CompileLog]:
        """Of the processes that compiled something, by rank, then by their first entry."""
        return _compiled(read_logs(self.path)) if any(self.path.iterdir()) else []


@contextlib.contextmanager
def trace_folder() -> Iterator[TraceFolder]:
    """A folder for a while; files that the user's own TORCH_TRACE asks for are handed on at the end."""
    with tempfile.TemporaryDirectory(prefix="pyrometer-", ignore_cleanup_errors=True) as path:
        folder = TraceFolder(Path(path))
        try:
            yield folder
        finally:
            _hand_on(folder.path, os.environ.get(TORCH_TRACE))


def report_script(script: ObservedScript, folder: TraceFolder, *, strict: bool = False) -> InspectedScript:
    """What was compiled in a script that has run and written its trace to a folder."""
    logs = folder.logs()
    log = logs[0] if logs else CompileLog(())
    notes = list(script.notes) if logs else [*script.notes, NOTHING]
    divergence = compare_ranks(logs)
    if len(logs) > 1:
        notes.append(f"{len(logs)} processes compiled something: this is the report of the first")
        notes += divergence
    steady_s, unavailable = _steady_s(script, log, folder.started_ns)
    report = build_report(
        log,
        first_call_s=script.first_step_s,
        steady_s=steady_s,
        notes=notes,
        unavailable=[*unavailable, "eager step time and numerics: a script runs once, as it is"],
        strict=strict,
    )
    return InspectedScript(report, script, log, divergence)


def _compiled(logs: list[CompileLog]) -> list[CompileLog]:
    """The logs in which something was compiled, by rank, then by their first entry."""
    compile_logs = [log for log in logs if log.compile_ids()]
    return sorted(compile_logs, key=lambda log: (_rank_order(log), log.entries[0].time_ns))


def _rank_order(log: CompileLog) -> float:
    rank = rank_of(log)
    return float("inf") if rank is None else rank


def _steady_s(script: ObservedScript, log: CompileLog, started_ns: int) -> tuple[Seconds | None, list[str]]:
    """Median of the last third of the steps, unless something was compiled in them; or why there is none."""
    if len(script.step_ns) < FEWEST_STEPS:
        return None, [f"steady step time: {counted(len(script.step_ns), 'step')} of the script were seen"]
    first = len(script.step_ns) * 2 // 3
    last_third = [
        took_ns
        for took_ns, regular in zip(script.step_ns[first:], script.regular[first:], strict=False)
        if regular
    ]
    if not last_third:
        return None, ["steady step time: no regular step among the last third"]
    if _compiles_in(last_third, log, started_ns + script.step_start_ns[first]):
        return None, ["steady step time: torch still compiled in the last third of the steps"]
    return statistics.median(last_third) * 1e-9, []


def _compiles_in(steps_ns: list[int], log: CompileLog, begin_ns: int) -> bool:
    """Whether any of some steps may hold a compilation: one that ended after they began, and fits into the longest.

    The script's clock starts a little later than ours, when its interpreter is up: compilations seem to end later than they
    did, so that one is rather suspected than overlooked.

    Args:
        steps_ns: how long each took.
        log: what was compiled.
        begin_ns: of the first of them, in time since the epoch.
    """
    return any(
        span.end_ns >= begin_ns and span.duration_ns <= max(steps_ns) for span in waited_for(read_spans(log))
    )


def _hand_on(folder: Path, users: str | None) -> None:
    """Copy the files to where the user's own TORCH_TRACE wants them."""
    if users is None:
        return
    Path(users).mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        shutil.copy2(file, users)
