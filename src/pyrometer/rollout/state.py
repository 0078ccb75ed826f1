"""Where a rollout stands, and how it moves: a pure function of its record, of what the judge says and of the time.

::

    calm ──► running ──► promoted
              │   ▲ ╲
              ▼   │  ╲──► rolled back, aborted
           waiting, paused

`waiting` is a stage that is safe and whose gate nobody has opened yet, or one that nothing proves however long it takes. Paused and waiting stages hold their share and are still rolled
back for harm. The epoch counts how often the share changed: what was counted under different shares is never mixed.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pyrometer.errors import UsageError
from pyrometer.quantity import Seconds, counted, format_seconds
from pyrometer.record import Record, doc
from pyrometer.rollout.judging.judgement import Judgement
from pyrometer.rollout.plan import FEWEST_CALM_BLOCKS, Plan

Status = Literal["calm", "running", "waiting", "paused", "promoted", "rolled back", "aborted"]
ENDED: tuple[Status, ...] = ("promoted", "rolled back", "aborted")
LONGEST_STEP_S: Seconds = 60.0
"""Of the time between two looks: what is more (a clock that was set, a controller that was away) does not count as time in a stage."""

MOST_POINTS = 120
"""Of the course: when it is full, every second one goes."""

Command = Literal["approve", "pause", "abort"]
Action = Literal["start", "promote", "wait", "approve", "pause", "resume", "roll back", "abort", "finish"]


class Decision(Record, frozen=True, kw_only=True):
    """One entry of the log: what was decided, why, and on which figures."""

    number: Annotated[int, doc("1 for the first of a rollout; never missing, never twice")]
    at_s: Annotated[Seconds, doc("Unix time, by the clock of who decided")]
    attempt: int
    action: Annotated[
        Action,
        doc("what was done"),
    ]
    share: Annotated[float, doc("of the new version from then on")]
    reason: str
    by: Annotated[str, doc("controller, or who gave the command")] = "controller"
    figures: Annotated[dict[str, float], doc("estimate and evidence of each metric, at that moment")] = {}


class Point(Record, frozen=True, kw_only=True):
    """What the tests said at one moment; for whoever looks at their course."""

    num: Annotated[int, doc("observations of the new version until then")]
    share: float
    tests: Annotated[
        dict[str, tuple[float | None, float | None, float | None, float | None]],
        doc("estimate, both ends of its interval, and the evidence of harm, per metric"),
    ]


class State(Record, frozen=True, kw_only=True):
    """The whole state of a rollout; replaced as one piece, by whoever knows its version."""

    plan: Plan
    version: Annotated[int, doc("grows with every change")] = 1
    attempt: Annotated[int, doc("of this name, from 1")] = 1
    status: Status = "running"
    stage: Annotated[int, doc("index into the stages of the plan")] = 0
    shares: Annotated[list[float], doc("of the new version, per epoch; the last one holds")] = []
    elapsed_s: Annotated[Seconds, doc("in this stage, as controllers saw it pass")] = 0.0
    seen_s: Annotated[Seconds, doc("Unix time of the last look")] = 0.0
    approved: Annotated[bool, doc("whether somebody opened the gate of this stage")] = False
    num_decisions: int = 0
    failures: Annotated[dict[str, int], doc("attempts that were rolled back, per version")] = {}
    course: Annotated[list[Point], doc("thinned out as it grows")] = []

    @property
    def share(self) -> float:
        """Of the new version, now."""
        return self.shares[-1]

    @property
    def epoch(self) -> int:
        """The number of the share that holds."""
        return len(self.shares) - 1

    @property
    def is_calm(self) -> bool:
        """Whether replicas of the new version still run the old one, also while that waits or is paused."""
        return self.epoch == 0 and not self.plan.is_randomised

    @property
    def has_ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in ENDED

    @property
    def next_share(self) -> float:
        """Of the stage after this one."""
        stages = self.plan.stages
        return stages[min(self.stage + 1, len(stages) - 1)]


Step = tuple[State, list[Decision]]


def start(plan: Plan, now_s: Seconds, by: str, before: State | None = None) -> Step:
    """A rollout at its first stage.

    Args:
        plan: what it means to do.
        now_s: Unix time.
        by: who starts it.
        before: the last rollout of this name, if there was one.

    Raises:
        UsageError: one is under way, or the version failed too often.
    """
    if before is not None and not before.has_ended:
        raise UsageError(
            f"rollout {plan.name!r}: {before.plan.new} is under way ({before.status} at {before.share:.0%}); "
            f"pyrometer rollout abort {plan.name} ends it"
        )
    failures = before.failures if before is not None else {}
    failed = failures.get(plan.new, 0)
    if failed >= plan.max_failures:
        raise UsageError(
            f"rollout {plan.name!r}: {plan.new} was rolled back {failed} times and is in quarantine (max_failures={plan.max_failures}); "
            "roll out another version, or raise --max-failures"
        )
    calm = not plan.is_randomised
    state = State(
        plan=plan,
        version=1 if before is None else before.version + 1,
        attempt=1 if before is None else before.attempt + 1,
        status="calm" if calm else "running",
        shares=[plan.stages[0]],
        seen_s=now_s,
        num_decisions=0 if before is None else before.num_decisions,
        failures=failures,
    )
    first = "all replicas run the old version until their noise is known" if calm else "first stage"
    return _decide(state, "start", f"{plan.old} → {plan.new}: {first}", now_s, by=by)


def step(state: State, judged: Judgement, now_s: Seconds, *, calm_blocks: int = 0) -> Step:
    """One look of a controller: time passes, and at most one thing is decided.

    Args:
        state: as it was read.
        judged: what all counts say of the next stage.
        now_s: Unix time; a clock that steps back, or far ahead, makes no stage longer or shorter than it was.
        calm_blocks: for replicas, how many blocks their noise is known from.
    """
    if state.has_ended:
        return state, []
    passed = min(max(now_s - state.seen_s, 0.0), LONGEST_STEP_S)
    state = _changed(state, elapsed_s=state.elapsed_s + passed, seen_s=now_s)
    if judged.outcome == "worse":
        return _roll_back(state, judged.reason, now_s, judged)
    if state.status == "paused":
        return state, []
    return _go_on(state, judged, now_s, calm_blocks)


def _go_on(state: State, judged: Judgement, now_s: Seconds, calm_blocks: int) -> Step:
    if judged.outcome == "mismatch":
        paused = _changed(state, status="paused")
        return _decide(paused, "pause", judged.reason, now_s, judged)
    if state.elapsed_s >= state.plan.deadline_s and judged.outcome != "safe":
        said = f"no verdict within {format_seconds(state.plan.deadline_s)}: {judged.reason}"
        return _roll_back(state, said, now_s, judged)
    if state.is_calm:
        return _leave_calm(state, judged, now_s, calm_blocks)
    return _advance(state, judged, now_s)


def _leave_calm(state: State, judged: Judgement, now_s: Seconds, calm_blocks: int) -> Step:
    if calm_blocks >= FEWEST_CALM_BLOCKS:
        said = f"{counted(calm_blocks, 'block')} of all replicas with the old version"
    elif judged.is_final and state.approved:
        said = f"approved by hand and not proved: {judged.reason}"
    else:
        return _wait(state, judged, now_s) if judged.is_final else (state, [])
    said += f"; from now on the new ones run {state.plan.new}"
    return _decide(_enter(state, 0), "promote", said, now_s)


def _wait(state: State, judged: Judgement, now_s: Seconds) -> Step:
    """Hold the share until somebody approves; told once."""
    if state.status == "waiting":
        return state, []
    said = f"{judged.reason}; this stage is left only after approval: pyrometer rollout advance {state.plan.name}"
    return _decide(_changed(state, status="waiting"), "wait", said, now_s, judged)


def _advance(state: State, judged: Judgement, now_s: Seconds) -> Step:
    plan = state.plan
    is_open = state.approved or plan.stages[state.stage] not in plan.gates
    by_hand = judged.outcome == "not proved" and state.approved
    if judged.outcome != "safe" and not by_hand:
        if judged.is_final:
            return _wait(state, judged, now_s)
        return (_changed(state, status="running") if state.status == "waiting" else state), []
    if state.elapsed_s < plan.min_s or (judged.num_new < plan.min_samples and plan.is_randomised):
        return state, []
    if not is_open:
        return _wait(state, judged, now_s)
    reason = f"approved by hand and not proved: {judged.reason}" if by_hand else judged.reason
    following = state.stage + 1
    if plan.stages[following] == 1.0:
        ended = _changed(_enter(state, following), status="promoted")
        return _decide(ended, "finish", reason, now_s, judged)
    return _decide(_enter(state, following), "promote", reason, now_s, judged)


def remember(state: State, judged: Judgement, num: int) -> State:
    """Add a point to the course, where something was counted since the last one."""
    if not judged.tests or (state.course and state.course[-1].num == num):
        return state
    tests = {test.metric: (test.estimate, test.ci_low, test.ci_high, test.e_value) for test in judged.tests}
    kept = state.course[::2] if len(state.course) >= MOST_POINTS else state.course
    return _changed(state, course=[*kept, Point(num=num, share=state.share, tests=tests)])


def obey(state: State, command: Command, now_s: Seconds, by: str, reason: str = "") -> Step:
    """What somebody orders.

    Raises:
        UsageError: the rollout has ended, or there is nothing to approve.
    """
    if state.has_ended:
        raise UsageError(f"rollout {state.plan.name!r}: it has ended ({state.status}); start another one")
    if command == "abort":
        ended = _take_back(state, "aborted")
        return _decide(ended, "abort", reason or "by command", now_s, by=by)
    if command == "pause":
        if state.status == "paused":
            return state, []
        return _decide(_changed(state, status="paused"), "pause", reason or "by command", now_s, by=by)
    back: Status = "calm" if state.is_calm else "running"
    if state.status == "paused":
        resumed = _changed(state, status=back)
        return _decide(resumed, "resume", reason or "by command", now_s, by=by)
    if state.approved:
        return state, []
    gates = state.plan.gates
    if state.plan.stages[state.stage] not in gates and state.plan.is_randomised:
        shown = ", ".join(f"{share:.0%}" for share in gates) or "none"
        raise UsageError(
            f"rollout {state.plan.name!r}: the stage of {state.share:.0%} has no gate (gates: {shown}), and only evidence moves it on; "
            "pyrometer rollout status shows what is missing"
        )
    approved = _changed(state, status=back, approved=True)
    return _decide(approved, "approve", reason or "by command", now_s, by=by)


def _roll_back(state: State, reason: str, now_s: Seconds, judged: Judgement) -> Step:
    new = state.plan.new
    failures = {**state.failures, new: state.failures.get(new, 0) + 1}
    return _decide(
        _changed(_take_back(state, "rolled back"), failures=failures), "roll back", reason, now_s, judged
    )


def _take_back(state: State, status: Status) -> State:
    return _changed(state, status=status, shares=[*state.shares, 0.0], elapsed_s=0.0)


def _enter(state: State, stage: int) -> State:
    shares = [*state.shares, state.plan.stages[stage]]
    return _changed(state, stage=stage, shares=shares, status="running", elapsed_s=0.0, approved=False)


def _decide(
    state: State,
    action: Action,
    reason: str,
    now_s: Seconds,
    judged: Judgement | None = None,
    *,
    by: str = "controller",
) -> Step:
    number = state.num_decisions + 1
    figures: dict[str, float] = {}
    for test in judged.tests if judged is not None else []:
        for name in ("estimate", "e_value"):
            value = getattr(test, name)
            if value is not None:
                figures[f"{test.metric}.{name}"] = value
    decision = Decision(
        number=number, at_s=now_s, attempt=state.attempt, action=action, share=state.share, reason=reason, by=by,
        figures=figures,
    )  # fmt: skip
    return _changed(state, num_decisions=number), [decision]


def _changed(state: State, **fields: object) -> State:
    return msgspec.structs.replace(state, **fields)
