"""What is the same in every run: operators and copies of a step, graph breaks, recompiles, kernels, the peak of memory.

One run of each side tells them apart without statistics. What differs from one step to the next is left out.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pyrometer.bench.clock import clock_for
from pyrometer.bench.comparison.interleaving import Side, require_genuine, seed_all
from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import PyrometerError
from pyrometer.guard.observed import Counted, OperatorCount
from pyrometer.memory.profiling import profile_memory
from pyrometer.workload.workload import Session, Workload

SEED = 0
FIRST_STEPS = 3
"""In which a program compiles; a recompilation in the second is one of every run."""

_COPIES = frozenset({"aten::clone", "aten::copy_", "aten::_to_copy"})


def count(work: Workload, tree: Path) -> Counted:
    """Count a workload.

    As many steps come before each that is counted on either side, however fast they are: what a step does may depend on its batch.

    Args:
        work: what to count.
        tree: files below it are the user's.

    Raises:
        InputError: compiled, its time would not be that of its work.
        UserProgramError: a step raised.
    """
    notes: list[str] = []
    with work.open() as session:
        with observe_compile() as seen:
            side = _warmed(work, session)
        report = seen.report()
        compiled = report if report.compilations else None
        if compiled:  # of which no step is counted; another session would compile again
            notes += _doubts(side)
        counters, operators = (_of_compiler(report), []) if compiled else _of_operators(session, tree, notes)
        if session.device.type == "cuda":
            counters |= _of_device(session)
    memory = None
    if counters:
        seed_all(SEED)
        try:
            memory = profile_memory(work, predict=False)
        except PyrometerError as error:
            notes.append(f"memory could not be profiled: {error}")
        else:
            counters["peak_bytes"] = float(memory.peak_bytes)
    return Counted(
        kind=type(work).__name__,
        counters=counters,
        operators=operators,
        compiled=compiled,
        memory=memory,
        notes=notes,
    )


def doubts_of(work: Workload) -> list[str]:
    """What may make the time of a step another than that of its work; how many steps it runs depends on how long they take.

    Raises:
        InputError: its time is not that of its work.
        UserProgramError: a step raised.
    """
    with work.open() as session:
        return _doubts(_warmed(work, session))


def _doubts(side: Side) -> list[str]:
    return [doubt.message for doubt in require_genuine([side])]


def _warmed(work: Workload, session: Session) -> Side:
    seed_all(SEED)
    side = Side(work.name, session, clock_for(session.device))
    for _ in range(FIRST_STEPS):
        side.warm()
    return side


def _of_compiler(report: CompileReport) -> dict[str, float]:
    return {
        "graph_breaks": len(report.breaks),
        "recompiles": len(report.recompiles),
        "graphs": report.graphs,
        "kernels": sum(len(code.kernels) for code in report.code),
        "artifact_bytes": report.artifact_bytes,
    }


def _of_operators(
    session: Session, tree: Path, notes: list[str]
) -> tuple[dict[str, float], list[OperatorCount]]:
    """Calls of operators in a step, where two steps have as many; none where no tensor is computed with."""
    first, second = (_calls(session, tree) for _ in range(2))
    if not first and not second:
        return {}, []
    counters: dict[str, float] = {}
    totals = [_totals(calls) for calls in (first, second)]
    for name in totals[0]:
        if totals[0][name] == totals[1][name]:
            counters[name] = totals[0][name]
        else:
            notes.append(
                f"{name} differ from step to step ({totals[0][name]}, then {totals[1][name]}): not a gate"
            )
    operators = [
        OperatorCount(op=op, file=file, line=line, calls=calls)
        for (op, file, line), calls in sorted(second.items(), key=str)
    ]
    return counters, operators


_Calls = Counter[tuple[str, str | None, int | None]]


def _totals(calls: _Calls) -> dict[str, int]:
    copies = sum(number for (op, _, _), number in calls.items() if op in _COPIES)
    return {"operators": sum(calls.values()), "copies": copies}


def _calls(session: Session, tree: Path) -> _Calls:
    session.activate()
    seed_all(SEED)
    prepared = session.prepare()
    log = _OperatorLog(str(tree))
    with log:
        session.step(prepared)
    return log.calls


class _OperatorLog(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators by the user's line that calls them."""

    def __init__(self, tree: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: _Calls = Counter()
        self._tree = tree.rstrip("/") + "/"

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.calls[(func.name().partition(".")[0], *self._place())] += 1
        return func(*args, **(kwargs or {}))

    def _place(self) -> tuple[str | None, int | None]:
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the one way to the caller's line that costs nothing
        while frame is not None:
            if frame.f_code.co_filename.startswith(self._tree):
                return frame.f_code.co_filename.removeprefix(self._tree), frame.f_lineno
            frame = frame.f_back
        return None, None


def _of_device(session: Session) -> dict[str, float]:
    """Kernels and copies that a step launches on a device."""
    seed_all(SEED)
    prepared = session.prepare()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        session.step(prepared)
        torch.cuda.synchronize(session.device)
    names = [event.name for event in profiler.events() or () if str(event.device_type).endswith("CUDA")]
    moved = sum(name.startswith(("Memcpy", "Memset")) for name in names)
    return {"kernels": len(names) - moved, "device_copies": moved}
