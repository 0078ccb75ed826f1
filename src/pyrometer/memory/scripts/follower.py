"""What is told, inside of a script that runs as it is, of all that begins and ends there; it writes what it finds to a file.

The first steps are recorded, operator by operator, and those after them watched for memory that stays. Nothing is done where
torch is in the midst of calling its hooks: a step that is over is noted, and acted upon when the next thing begins.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import torch

from pyrometer.errors import InputError, UsageError
from pyrometer.memory.private import stacks
from pyrometer.memory.profile import MemoryProfile, ProcessLevels
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.scripts.account import Accounting
from pyrometer.memory.scripts.compiling import CompileWatch
from pyrometer.memory.scripts.findings import STEPS, FollowSettings, ScriptFindings, write_findings
from pyrometer.memory.scripts.phases import Phases
from pyrometer.memory.scripts.recording import Recording
from pyrometer.memory.scripts.settling import settle
from pyrometer.memory.scripts.watching import LeakWatch
from pyrometer.memory.scripts.whole_run import WholeRunPeak
from pyrometer.quantity import counted
from pyrometer.record import from_dict
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.memory import (
    read_resident_pages,
    resident_peak_bytes,
)
from pyrometer.workload.script.startup._pyrometer_inside.step_ends import (
    ANOTHER,
    BETTER,
    STEP,
    StepEnds,
)
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import hide_from_compiler

OPERATORS = "every operator of the first steps, as the script ran"
ACCOUNT = "the allocator's events in two of the script's steps, since compiled code cannot be watched operator by operator"

Stage = Literal["recording", "accounting", "watching", "done"]


def follow(_torch: Any, settings: dict[str, Any]) -> MemoryFollower:
    """Begin, right after torch was imported.

    Raises:
        InputError: the settings are not what they should be.
        UsageError: this torch lacks what is needed.
    """
    lacking = stacks.missing()
    if lacking:
        raise UsageError(f"torch {torch.__version__} lacks {lacking[0]}")
    hide_from_compiler(
        torch,
        MemoryFollower,
        Phases,
        StepEnds,
        Recording,
        Accounting,
        LeakWatch,
        CompileWatch,
        WholeRunPeak,
    )
    return MemoryFollower(from_dict(FollowSettings, settings))


class MemoryFollower:
    """Told by the observer what begins and ends in the script's main thread; nothing that fails here reaches the script."""

    def __init__(self, settings: FollowSettings) -> None:
        self._settings = settings
        self._stage: Stage = "recording"
        self._phases = Phases()
        self._ends = StepEnds()
        self._steps = 0
        self._is_over = self._is_better = False
        self._notes: list[str] = []
        self._profile: MemoryProfile | None = None
        self._start_bytes = read_resident_pages() * os.sysconf("SC_PAGE_SIZE")
        self._compiled = False
        self._compiling = CompileWatch(self._compiles)
        self._accounting = Accounting()
        self._watch: LeakWatch | None = None
        self._course: WholeRunPeak | None = WholeRunPeak()
        self._recording = Recording(_device())
        self._recording.enter()

    def begin(self, kind: int, value: int, subject: Any = None) -> None:
        """Something of this kind begins, on this object."""
        self._read_meter(kind, value)
        self._guarded(lambda: self._begins(kind, value, subject))

    def end(self, kind: int, value: int = 0, subject: Any = None) -> None:
        """Something of this kind has ended; of data, the value says whether there was any."""
        self._read_meter(kind, value)
        self._guarded(lambda: self._ended(kind, value, subject))

    def finish(self) -> None:
        """The script ends; what was found until now is kept."""
        self._finish_course()
        self._guarded(self._finish)
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            _be_interrupted()

    def detach(self) -> None:
        """In a forked child: there is nothing to follow, nothing to write, and nothing to leave behind."""
        self._course = None
        if self._stage != "done":
            self._stage = "done"
            with contextlib.suppress(Exception):  # a child of the script's has nowhere to tell it
                self._take_out()

    def _read_meter(self, kind: int, value: int) -> None:
        """For the peak of the whole run; goes on when there is nothing else to follow."""
        if self._course is None:
            return
        try:
            self._course.at(kind, value)
        except Exception as error:  # noqa: BLE001 - the script comes first; the findings say what happened
            self._notes.append(
                f"the peak of all steps was followed no further: {type(error).__name__}: {error}"
            )
            self._course = None

    def _finish_course(self) -> None:
        """The script ends; where all but the peak of its whole run was written before, it is written here."""
        if self._course is None:
            return
        try:
            self._course.finish()
            if self._stage == "done" and self._profile is not None:
                self._write()
        except Exception as error:  # noqa: BLE001 - see above
            self._notes.append(f"the peak of all steps was not written: {type(error).__name__}: {error}")

    def _guarded(self, act: Callable[[], None]) -> None:
        if self._stage == "done":
            return
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the script comes first; the findings say what happened
            self._notes.append(f"following the script failed: {type(error).__name__}: {error}")
            self._give_up()

    def _give_up(self) -> None:
        self._stage = "done"
        try:
            self._leave()
            self._write()
        except Exception as error:  # noqa: BLE001 - see above
            self._notes.append(f"and so did leaving it: {type(error).__name__}: {error}")

    def _begins(self, kind: int, value: int, subject: Any) -> None:
        self._end_phase(self._phases.begin(kind))
        self._recording.fetch(kind == kinds.DATA_BEGIN)
        self._mark(kind, value)
        if kind != kinds.OPTIMIZER_BEGIN:
            self._act()
        self._know(subject)

    def _ended(self, kind: int, value: int, subject: Any) -> None:
        self._know(subject)
        self._end_phase(self._phases.end(kind))
        self._recording.fetch(False)
        self._mark(kind, value)
        exhausted = kind == kinds.DATA_END and value & kinds.EXHAUSTED
        if exhausted and self._watch is not None and self._watch.pause():
            self._write()

    def _know(self, subject: Any) -> None:
        if self._stage in {"recording", "accounting"}:
            self._accounting.know(subject)

    def _end_phase(self, name: str) -> None:
        if self._stage == "recording":
            self._recording.end_phase(name, self._steps)
        elif self._stage == "accounting":
            self._accounting.end_phase(name, self._steps)

    def _mark(self, kind: int, value: int) -> None:
        found = self._ends.at(kind, value)
        if found & BETTER and self._stage == "watching":
            self._is_better = True
        if found & (BETTER | ANOTHER):
            self._steps = 0
        if found & STEP:
            if self._is_over and self._watch is not None:
                self._watch.missed += 1
            self._steps += 1
            self._is_over = True

    def _act(self) -> None:
        """What is due now that a step is over; in a place where hooks may come and go."""
        if self._is_better:
            self._begin_anew()
        if self._stage == "recording":
            self._act_recording()
        elif self._stage == "accounting":
            self._act_accounting()
        elif self._watch is not None and self._is_over:
            if not self._watch.on_top:
                return  # it stays over
            self._act_watching(self._watch)
        self._is_over = False

    def _act_recording(self) -> None:
        device = _device()
        if device.type != self._recording.device.type and self._recording.on_top:
            self._record_anew(device)  # the script has begun to use it, and what was before is of no interest
        elif self._steps >= STEPS and self._recording.on_top:
            self._recorded(self._recording.log, OPERATORS)

    def _act_accounting(self) -> None:
        account = self._accounting
        if (account.running and self._steps >= STEPS) or account.gave_way:
            self._recorded(account.stop(), ACCOUNT)
        elif self._is_over and not account.running:
            try:
                account.start(_device())
            except InputError:
                return  # its own profiler is at work
            self._steps = 0

    def _act_watching(self, watch: LeakWatch) -> None:
        if watch.step():
            self._write()
        if watch.done and self._ends.is_best:
            self._leave()

    def _compiles(self) -> None:
        """Before anything that is compiled runs: from here on no dispatch mode may be in its way."""
        self._guarded(self._without_operators)

    def _without_operators(self) -> None:
        if self._compiled:
            return
        self._compiled = True
        if self._course is not None:
            self._course.compiles()
        if self._stage == "recording":
            self._recording.leave()
            self._steps = 0
            self._stage = "accounting"
        elif self._watch is not None:
            self._watch.leave()
            self._start_watch()

    def _begin_anew(self) -> None:
        """Steps by a better mark have begun: those before were of something else."""
        if self._watch is not None and self._watch.on_top:
            self._watch.leave()
        if self._compiled:
            self._accounting = Accounting()
            self._stage = "accounting"
        elif stacks.is_clear():
            self._record_anew(_device())
        else:
            return  # another time
        self._watch = None
        self._is_better = False

    def _record_anew(self, device: torch.device) -> None:
        before = self._recording
        before.leave()
        self._recording = Recording(device)
        self._recording.enter(before)
        self._stage = "recording"

    def _recorded(self, log: AllocationLog, source: str) -> None:
        """The first steps are over."""
        self._recording.leave()
        self._profile = self._profile_of(log, source)
        if self._course is not None and _device().type == "cpu":
            self._course.recorded(log.live_bytes, steps=self._steps)
        self._write()
        self._start_watch()

    def _start_watch(self) -> None:
        self._stage = "watching"
        self._watch = LeakWatch(self._settings.leak_steps, _device(), operators=not self._compiled)
        if self._watch.done and self._ends.is_best:
            self._leave()
        elif not self._watch.done and self._watch.on_top:
            self._watch.start()

    def _finish(self) -> None:
        self._end_phase(self._phases.rest())
        if self._stage == "recording":
            self._recording.leave()
            self._profile = self._profile_of(self._recording.log, OPERATORS)
            self._notes.append(self._too_short())
        elif self._stage == "accounting":
            self._finish_accounting()
        elif self._watch is not None:
            self._watch.finish()
        self._leave()
        self._write()

    def _finish_accounting(self) -> None:
        if self._accounting.running or self._accounting.gave_way:
            self._profile = self._profile_of(self._accounting.stop(), ACCOUNT)
            self._notes.append(self._too_short())
        else:
            self._notes.append(
                "not recorded: the script compiles, and took no whole step after the first, without a profiler of its own"
            )

    def _too_short(self) -> str:
        if not self._phases.begun or self._ends.rank == 0:
            return "no steps were seen: this is the memory of the whole run"
        recorded = f"{counted(self._steps, 'whole step')} recorded"
        if self._steps > STEPS:
            return f"{recorded}, and none watched: the script's own dispatch modes or saved-tensor hooks were never over"
        return f"{recorded} before the script ended, and none watched for leaks"

    def _profile_of(self, log: AllocationLog, source: str) -> MemoryProfile:
        from pyrometer.memory.ledger.profile_of import profile_of_log

        settle(log)
        device = self._recording.device if source == OPERATORS else _device()
        return profile_of_log(
            log, name=self._settings.name, device=device.type, source=source, levels=self._levels(device)
        )

    def _levels(self, device: torch.device) -> ProcessLevels:
        levels = ProcessLevels(rss_start_bytes=self._start_bytes, rss_peak_bytes=resident_peak_bytes())
        if device.type != "cuda" or torch.cuda.is_current_stream_capturing():
            return levels
        from pyrometer.memory.levels import with_device

        return with_device(levels, torch.device("cuda", torch.cuda.current_device()))

    def _leave(self) -> None:
        """Nothing of ours stays."""
        self._stage = "done"
        self._take_out()
        if self._accounting.running:
            self._accounting.stop()

    def _take_out(self) -> None:
        self._compiling.remove()
        self._recording.leave()
        if self._watch is not None:
            self._watch.leave()

    def _write(self) -> None:
        profile = self._profile
        if profile is not None:
            report = self._watch.report if self._watch is not None else None
            whole = self._course.found(profile.peak_bytes) if self._course is not None else None
            notes = [*profile.notes, *self._told()]
            profile = msgspec.structs.replace(profile, leak=report, whole_run=whole, notes=notes)
        found = ScriptFindings(profile=profile, notes=self._told())
        write_findings(found, self._settings.path)

    def _told(self) -> list[str]:
        """What went wrong, or could not be seen."""
        notes = list(self._notes)
        if self._recording.trouble is not None:
            notes.append(self._recording.trouble)
        if self._watch is not None and self._watch.missed:
            steps = counted(self._watch.missed, "step")
            notes.append(
                f"{steps} not watched: a dispatch mode or a transform of the script's own was active when they ended"
            )
        return notes


def _be_interrupted() -> None:
    """Have Python end by the signal again, as it does after an interrupt that nobody caught.

    It forgets that when source text is run meanwhile, as modules do when they are imported and make named tuples.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102 - source text again: this is what Python remembers


def _device() -> torch.device:
    """What the script computes on, as far as is known now."""
    in_use = bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
    return torch.device("cuda" if in_use else "cpu")
