"""Running compiled steps: the first one, those until nothing compiles any more, steady ones, and a few under the profiler."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyrometer.bench.clock import clock_for
from pyrometer.bench.dynamo import compile_seconds
from pyrometer.bench.sampling import step_failure
from pyrometer.bench.stage import Progress
from pyrometer.compiler.inspection.eager import EagerSession
from pyrometer.compiler.inspection.earlier import EarlierCode
from pyrometer.compiler.inspection.pairing import Paired, compare_sessions, undecided
from pyrometer.compiler.inspection.runtime import Profiled, can_profile, middle_recording, profile_steps
from pyrometer.compiler.inspection.uncompiled import why_nothing
from pyrometer.compiler.recompiles.silent import GuardWatch
from pyrometer.errors import PyrometerError, UserProgramError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.workload.failure import user_code
from pyrometer.workload.workload import Session, Workload

QUIET_STEPS = 2
MOST_STEPS = 20
PROFILED_STEPS, MOST_PROFILED_STEPS, PROFILED_S = 5, 30, 0.5
RECORDINGS = 3
INTERRUPTED = "Ctrl-C ended it after the first compiled step: what had not been run by then is missing"
PROFILER_RUNS = (
    "time per compiled graph: another profiler is running in this process, and there can be only one"
)
NO_COUNT = "eager step time: what it costs to force steps to run eagerly cannot be told beside another profiler in Python"
MOST_FORCING = 0.02
"""Share of an eager step that forcing it to be eager may take before it says nothing any more."""


@dataclass
class Seen:
    """What running showed; the log says the rest."""

    work: Workload
    """As it was compiled."""
    as_written: bool = True
    """Its author compiles it; else it was compiled for this report."""
    first_call_s: Seconds | None = None
    num_steps: int = 0
    failure: UserProgramError | None = None
    """What a compiled step raised."""
    paired: Paired | None = None
    profiled: Profiled | None = None
    watch: GuardWatch | None = None
    notes: list[str] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)
    interrupted: bool = False
    """Ctrl-C ended it after the first step."""


@dataclass(frozen=True)
class Plan:
    """How much to run."""

    steps: int
    cycle: int
    budget_s: Seconds
    progress: Progress

    def profiled_steps(self, step_s: Seconds) -> tuple[int, int]:
        """How many recordings, and steps in each, where every input is met as often as the others.

        Half a second of steps, but 5 at least and 30 at most; in three recordings where each has enough of them.
        """
        wanted = min(max(PROFILED_S / max(step_s, 1e-9), PROFILED_STEPS), MOST_PROFILED_STEPS)
        count = RECORDINGS if wanted >= RECORDINGS * max(PROFILED_STEPS, self.cycle) else 1
        return count, math.ceil(wanted / count / self.cycle) * self.cycle


class CompiledRun:
    """One workload in one open session.

    Args:
        work: as it is to be compiled.
        plan: how much to run.
        earlier: what was compiled before anything was recorded.
    """

    def __init__(self, work: Workload, plan: Plan, earlier: EarlierCode) -> None:
        self.seen = Seen(work)
        self._plan = plan
        self._earlier = earlier
        self._step_s = 0.0

    def go(self, *, is_last: bool) -> bool:
        """Run everything.

        A step that raises ends it, and stands in `seen.failure`.

        Args:
            is_last: go on also when nothing compiled.

        Returns:
            False when nothing is compiled, neither now nor before, and there is something else to try.

        Raises:
            InputError: the workload cannot be prepared.
        """
        with contextlib.ExitStack() as stack:
            session = stack.enter_context(self.seen.work.open())
            try:
                compiles = self._first(session)
                if not (compiles or is_last):
                    return False
                watch = self._settle_watched(session)
                if not compiles:
                    self.seen.notes.append(why_nothing(self.seen.work, watch.silent()))
                self._profile(session)
                self._pair(session)
            except UserProgramError as failure:
                self.seen.failure = failure
            except KeyboardInterrupt:
                if self.seen.first_call_s is None:
                    raise
                self.seen.interrupted = True
                self.seen.notes.append(INTERRUPTED)
        return True

    def _first(self, session: Session) -> bool:
        """The first step; whether compiled code ran in it, or runs in the next."""
        self._plan.progress(0.0, "first step")
        clock, before_s = clock_for(session.device), compile_seconds()
        session.activate()
        with self._user_steps():
            prepared = session.prepare()
            clock.synchronize()
            start_ns = clock.host_ns()
            session.step(prepared)
            clock.synchronize()
        self.seen.first_call_s = (clock.host_ns() - start_ns) * 1e-9
        if self._earlier:
            with self._user_steps(), self._earlier.watching_calls():
                session.step(session.prepare())
        if compile_seconds() != before_s:
            return True
        with self._user_steps():
            if not runs_compiled(session):
                return False
        self.seen.notes.append(
            "the first step compiled nothing: it had been compiled before in this process; "
            "what stands here of graphs is of what was compiled anew"
        )
        return True

    def _settle_watched(self, session: Session) -> GuardWatch:
        """Settle while guards are timed, and calls are looked for that run eagerly without a word."""
        watch = GuardWatch(measure=True)
        with watch:
            self._settle(session)
        self.seen.watch = watch
        self.seen.unavailable += watch.unavailable
        return watch

    def _settle(self, session: Session) -> None:
        plan, since = self._plan, 0
        for number in range(1, max(plan.steps, MOST_STEPS, 3 * plan.cycle)):
            if number >= plan.steps and since >= max(QUIET_STEPS, plan.cycle):
                return
            plan.progress(0.0, f"step {number + 1}")
            before_s, start_s = compile_seconds(), time.perf_counter()
            with self._user_steps():
                session.step(session.prepare())
            self._step_s = time.perf_counter() - start_s
            since = since + 1 if compile_seconds() == before_s else 0
        if since < QUIET_STEPS:
            self.seen.notes.append(
                f"something was still being compiled in step {self.seen.num_steps}: step times include it"
            )

    def _profile(self, session: Session) -> None:
        if not can_profile():
            self.seen.unavailable.append(PROFILER_RUNS)
            return
        self._plan.progress(0.0, "steps under the profiler")
        count, num_steps = self._plan.profiled_steps(self._step_s)
        with self._user_steps(count * num_steps):
            self.seen.profiled = middle_recording([profile_steps(session, num_steps) for _ in range(count)])

    def _pair(self, session: Session) -> None:
        eager = EagerSession(session)
        with user_code("an eager step"):
            forcing_s = eager.forcing_s()
        if forcing_s is None:
            self.seen.unavailable.append(NO_COUNT)
            return
        before_s = compile_seconds()
        paired = compare_sessions(session, eager, self._plan.budget_s, self._plan.progress)
        self.seen.paired = self._judged(paired, forcing_s)
        if compile_seconds() != before_s:
            self.seen.notes.append(
                "something was compiled while steps were timed: an input of a new kind came"
            )

    def _judged(self, paired: Paired, forcing_s: Seconds) -> Paired:
        """The comparison, undecided where forcing the eager steps takes too much of them."""
        if not forcing_s or paired.eager_steady_s is None:
            return paired
        text = (
            f"eager steps run through wrappers of torch.compile under the stance force_eager, which takes about "
            f"{format_seconds(forcing_s)} of the {format_seconds(paired.eager_steady_s)} of a step"
        )
        if forcing_s <= MOST_FORCING * paired.eager_steady_s:
            self.seen.notes.append(text)
            return paired
        self.seen.notes.append(
            f"not compared with eager: {text}; give the program without torch.compile as a workload of its own to compare"
        )
        self.seen.unavailable.append("eager step time: the program cannot be uncompiled from outside")
        return undecided(paired, text)

    @contextlib.contextmanager
    def _user_steps(self, count: int = 1) -> Iterator[None]:
        try:
            yield
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
            raise step_failure(self.seen.num_steps + 1, error) from error
        self.seen.num_steps += count


def runs_compiled(session: Session) -> bool:
    """Whether a step runs anything that was compiled, now or before; runs one step, and passes what it raises."""
    before_s = compile_seconds()
    session.activate()
    if not can_profile():
        session.step(session.prepare())
        return compile_seconds() != before_s
    return profile_steps(session, 1).ran_compiled or compile_seconds() != before_s
