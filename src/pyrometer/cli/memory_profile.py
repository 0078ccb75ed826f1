"""Answering what `pyrometer memory` asks: of a workload, a script, or a snapshot."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyrometer.bench.stage import part_of
from pyrometer.cli.baseline import read_baseline
from pyrometer.cli.explaining import explainer
from pyrometer.cli.memory_flags import MemoryLimits, over_limits
from pyrometer.cli.observe import without_steps
from pyrometer.cli.progress import progress_bar
from pyrometer.errors import ExitCode, UsageError
from pyrometer.redaction import redacted_argv
from pyrometer.settings import load_settings, with_flags

if TYPE_CHECKING:
    from pyrometer.bench.stage import Progress
    from pyrometer.memory.profile import MemoryProfile, PredictedMemory
    from pyrometer.memory.snapshots.report import SnapshotReport
    from pyrometer.quantity import Bytes, Seconds
    from pyrometer.record import Record
    from pyrometer.report.documents import MemoryDocument, SnapshotDocument
    from pyrometer.tuning.checkpointing.record import CheckpointPlan
    from pyrometer.workload.target import Target
    from pyrometer.workload.workload import Workload

R = TypeVar("R", bound="Record")

SNAPSHOT_SUFFIXES = (".pickle", ".pkl", ".pickle.gz", ".pkl.gz")

DEFAULT_LEAK_STEPS = 60

PROFILE_S = 10.0
"""About what a profile takes."""

PREDICTING = 0.9
"""Share that is done when what was asked beside the profile begins."""

MORE_BUDGET = "repeat the command with a larger --budget"


class MemoryQuestion(NamedTuple):
    """What was asked for on the command line."""

    target: str
    arguments: tuple[str, ...]
    what_if: list[dict[str, Any]]
    sizes: list[Bytes] | None
    leak_steps: int | None
    plan_bytes: Bytes | None
    limits: MemoryLimits
    baseline: str | None
    budget_s: Seconds | None
    store_location: str | None

    def require_workload(self, why: str) -> None:
        """Refuse flags that need a workload, where there is none.

        Raises:
            UsageError: such a flag was given.
        """
        asked = (("predict", self.what_if), ("fit", self.sizes), ("plan", self.plan_bytes))
        for flag, given in asked:
            if given:
                raise UsageError(f"--{flag}: {why}; it goes with a workload, as in model.py:workload")


class _Budget:
    """What `--budget` leaves."""

    def __init__(self, budget_s: Seconds | None) -> None:
        self._ends_s = None if budget_s is None else time.monotonic() + budget_s

    def left_s(self) -> Seconds | None:
        """Time that is left, at least a second; `None` without a budget."""
        return None if self._ends_s is None else max(self._ends_s - time.monotonic(), 1.0)

    def is_spent(self) -> bool:
        """Whether nothing more is to be begun."""
        return self._ends_s is not None and time.monotonic() >= self._ends_s


def of_target(question: MemoryQuestion, parsed: Target) -> MemoryDocument:
    """Profile a workload."""
    from msgspec.structs import replace

    from pyrometer.evidence.evidence import Evidence
    from pyrometer.hardware.environment import read_environment
    from pyrometer.memory.difference import diff_memory
    from pyrometer.memory.profile import MemoryProfile
    from pyrometer.memory.profiling import INTERRUPTED, profile_memory
    from pyrometer.report.documents import MemoryDocument
    from pyrometer.workload.loading import load_workload
    from pyrometer.workload.output import stdout_to_stderr
    from pyrometer.workload.program.describe import describe

    earlier = None if question.baseline is None else _baseline(question, MemoryProfile, "memory")
    _refuse_illegal(question)
    explained = explainer("memory", parsed)
    steps = DEFAULT_LEAK_STEPS if question.leak_steps is None else question.leak_steps
    budget = _Budget(question.budget_s)
    with stdout_to_stderr(), progress_bar() as progress:
        work = load_workload(parsed)
        asked = len(question.what_if) + (question.plan_bytes is not None)
        profile = profile_memory(
            work,
            budgets_bytes=question.sizes,
            leak_steps=steps,
            budget_s=question.budget_s,
            progress=part_of(progress, 0.0, 1 / (1 + asked / 4), PROFILE_S),
        )
        program = describe(work)
        what_if: list[PredictedMemory] = []
        plan = None
        try:
            if not profile.interrupted:
                what_if, profile = _predicted(work, question, profile, budget, progress)
                plan = None if question.plan_bytes is None else _plan(work, question, budget, progress)
        except KeyboardInterrupt:
            profile = replace(profile, interrupted=True, notes=[*profile.notes, INTERRUPTED])
    evidence = Evidence(
        target=question.target, environment=read_environment(), memory=profile, program=program
    )
    return MemoryDocument(
        evidence=evidence,
        diagnosis=explained(evidence),
        over_limit=_over_limits(question, profile),
        what_if=what_if,
        plan=plan,
        diff=None if earlier is None else diff_memory(earlier, profile),
    )


def _predicted(
    work: Workload, question: MemoryQuestion, profile: MemoryProfile, budget: _Budget, progress: Progress
) -> tuple[list[PredictedMemory], MemoryProfile]:
    """The answers to `--predict`; why there is none is a note, since the rest of the report stands without."""
    from msgspec.structs import replace

    from pyrometer.errors import PyrometerError
    from pyrometer.memory.prediction.predict import predict_memory

    what_if, notes = [], list(profile.notes)
    for number, settings in enumerate(question.what_if, 1):
        asked = ",".join(f"{name}={value}" for name, value in settings.items())
        if budget.is_spent():
            notes.append(f"--predict {asked} was not answered: the budget was spent; {MORE_BUDGET}")
            continue
        progress(PREDICTING, f"predicting {asked}, {number} of {len(question.what_if)}")
        try:
            what_if.append(predict_memory(work, **settings))
        except PyrometerError as error:
            notes.append(f"--predict {asked} could not be answered: {error}")
    return what_if, replace(profile, notes=notes)


def _refuse_illegal(question: MemoryQuestion) -> None:
    """Refuse values that would be refused anyway, before minutes are spent on a profile."""
    from pyrometer.memory.prediction.settings import settings_of

    with_flags(load_settings(os.environ, Path.cwd()), budget_s=question.budget_s)
    for changed in question.what_if:
        settings_of(**changed)


def of_script(question: MemoryQuestion, parsed: Target, *, quiet: bool) -> tuple[MemoryDocument, int]:
    """Profile a script as it runs; the second is its exit code."""
    import contextlib

    from pyrometer.evidence.evidence import Evidence
    from pyrometer.hardware.environment import read_environment
    from pyrometer.memory.difference import diff_memory
    from pyrometer.memory.profile import MemoryProfile
    from pyrometer.memory.scripts.profile import profile_script
    from pyrometer.report.documents import MemoryDocument
    from pyrometer.workload.output import stdout_to_stderr

    question.require_workload(f"{question.target} runs as it is")
    earlier = None if question.baseline is None else _baseline(question, MemoryProfile, "memory")
    explained = explainer("memory", parsed)
    argv = [question.target, *question.arguments]
    with stdout_to_stderr() if quiet else contextlib.nullcontext():
        memory = profile_script(argv, leak_steps=question.leak_steps)
    evidence = Evidence(
        target=shlex.join(redacted_argv(argv)), environment=read_environment(), memory=memory.profile
    )
    document = MemoryDocument(
        evidence=evidence,
        diagnosis=explained(evidence),
        over_limit=_over_limits(question, memory.profile),
        diff=None if earlier is None else diff_memory(earlier, memory.profile),
    )
    nothing = not memory.profile.peak_bytes and not memory.observed.step_ns
    return document, memory.exit_code or (without_steps(question.target) if nothing else ExitCode.OK)


def of_snapshot(question: MemoryQuestion) -> SnapshotDocument:
    """Report a snapshot."""
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.memory.snapshots.build import report_snapshot
    from pyrometer.memory.snapshots.difference import diff_snapshots
    from pyrometer.memory.snapshots.read import read_snapshot
    from pyrometer.report.documents import SnapshotDocument

    question.require_workload(f"{question.target} is a snapshot")
    if question.leak_steps is not None:
        raise UsageError(f"--leaks: {question.target} is a snapshot; compare two by --diff to see what grew")
    if question.limits.growth_bytes_per_step is not None:
        raise UsageError(
            f"--limit growth: {question.target} is a snapshot, which has no steps; legal is peak"
        )
    earlier = None if question.baseline is None else _earlier_snapshot(question)
    explained = explainer("memory")
    report = report_snapshot(read_snapshot(question.target))
    evidence = Evidence(target=question.target, snapshot=report)
    return SnapshotDocument(
        evidence=evidence,
        diagnosis=explained(evidence),
        over_limit=over_limits(question.limits, report.peak_bytes, None),
        diff=None if earlier is None else diff_snapshots(earlier, report),
    )


def _over_limits(question: MemoryQuestion, profile: MemoryProfile) -> list[str]:
    from pyrometer.memory.profile import UNDECIDED_GROWTH

    leak = profile.leak
    growth = None if leak is None or leak.verdict == UNDECIDED_GROWTH else leak.bytes_per_step
    return over_limits(question.limits, profile.highest_bytes, growth)


def _plan(work: Workload, question: MemoryQuestion, budget: _Budget, progress: Progress) -> CheckpointPlan:
    from pyrometer.tuning.checkpointing.plan import DEFAULT_BUDGET_S, plan_checkpoints
    from pyrometer.workload.training import Training

    if not isinstance(work, Training):
        raise UsageError(
            "--plan: inference keeps nothing for a backward pass; it goes with a training workload"
        )
    settings = with_flags(load_settings(os.environ, Path.cwd()), budget_s=budget.left_s())
    progress(PREDICTING, "choosing modules to compute again")
    return plan_checkpoints(work, budget=question.plan_bytes, budget_s=settings.budget_s or DEFAULT_BUDGET_S)


def _earlier_snapshot(question: MemoryQuestion) -> SnapshotReport:
    from pyrometer.memory.snapshots.build import report_snapshot
    from pyrometer.memory.snapshots.read import read_snapshot
    from pyrometer.memory.snapshots.report import SnapshotReport

    if str(question.baseline).endswith(SNAPSHOT_SUFFIXES):
        return report_snapshot(read_snapshot(str(question.baseline)))
    return _baseline(question, SnapshotReport, "snapshot")


def _baseline(question: MemoryQuestion, kind: type[R], part: str) -> R:
    return read_baseline(
        kind, str(question.baseline), kind="memory", part=part, store_location=question.store_location
    )
