"""The controller: reads what was counted, asks the judge, and moves the rollout; any number of them may run.

It remembers nothing. A controller that is killed at any point leaves a state that another one, or it itself after a restart, goes on
from: state and log are replaced together, and the share that processes serve is the one in the state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from pyrometer.errors import InputError, StoreError
from pyrometer.quantity import Seconds
from pyrometer.rollout import state as states
from pyrometer.rollout.judging.judge import judge
from pyrometer.rollout.judging.judgement import Judgement
from pyrometer.rollout.judging.replicas import calm_blocks
from pyrometer.rollout.ledger import Ledger
from pyrometer.rollout.observed import observed
from pyrometer.rollout.plan import Plan
from pyrometer.rollout.state import Command, Decision, State

_TRIES = 20
"""Of a command, where controllers come before it each time."""

Clock = Callable[[], float]


class Look(NamedTuple):
    """What a controller saw and did."""

    state: State
    judged: Judgement
    decisions: list[Decision]


def start_rollout(ledger: Ledger, plan: Plan, by: str, clock: Clock = time.time) -> State:
    """Begin a rollout, or another attempt of its name.

    Raises:
        UsageError: one is under way, or the version failed too often.
        StoreError: the ledger cannot be written, or another began one at the same moment.
    """
    before = ledger.read(plan.name)
    state, decisions = states.start(plan, clock(), by, before)
    if not ledger.replace(plan.name, None if before is None else before.version, state, decisions):
        raise StoreError(
            f"rollout {plan.name!r}: another one was started at the same moment; see pyrometer rollout status"
        )
    return state


def look(ledger: Ledger, name: str, clock: Clock = time.time) -> Look:
    """Judge, and decide at most one thing; where another controller came first, its decision stands.

    Raises:
        InputError: there is no such rollout.
        StoreError: the ledger cannot be used.
    """
    state = require(ledger, name)
    judged, blocks = judge_now(ledger, state)
    if state.has_ended:
        return Look(state, judged, [])
    seen = states.remember(state, judged, judged.num_all)
    after, decisions = states.step(seen, judged, clock(), calm_blocks=blocks)
    after = msgspec.structs.replace(after, version=state.version + 1)
    if ledger.replace(name, state.version, after, decisions):
        return Look(after, judged, decisions)
    return Look(require(ledger, name), judged, [])


def judge_now(ledger: Ledger, state: State) -> tuple[Judgement, int]:
    """What the judge says of all that was counted, and how many calm blocks there are."""
    reports = ledger.reports(state.plan.name, state.attempt)
    replicas = not state.plan.is_randomised
    shares = [state.plan.tested_share(share) for share in state.shares]
    seen = observed(shares, reports, keep_reports=replicas)
    judged = judge(state.plan, seen, next_share=state.next_share)
    return judged, calm_blocks(state.plan, reports) if replicas else 0


def command(
    ledger: Ledger, name: str, order: Command, by: str, *, reason: str = "", clock: Clock = time.time
) -> State:
    """Carry out what somebody orders.

    Raises:
        InputError: there is no such rollout.
        UsageError: it cannot be done now.
        StoreError: the ledger cannot be written.
    """
    for _ in range(_TRIES):
        state = require(ledger, name)
        after, decisions = states.obey(state, order, clock(), by, reason)
        if not decisions:
            return state
        after = msgspec.structs.replace(after, version=state.version + 1)
        if ledger.replace(name, state.version, after, decisions):
            return after
    raise StoreError(
        f"rollout {name!r}: its state changed {_TRIES} times while the order was given; try again"
    )


def require(ledger: Ledger, name: str) -> State:
    """The state of a rollout.

    Raises:
        InputError: there is none.
    """
    state = ledger.read(name)
    if state is None:
        known = ", ".join(ledger.names()[:10]) or "none"
        raise InputError(
            f"rollout {name!r}: there is none; legal are {known}; pyrometer rollout start {name} begins one"
        )
    return state


def watch(
    ledger: Ledger,
    names: list[str],
    *,
    every_s: Seconds,
    tell: Callable[[Look], None],
    wait: Callable[[Seconds], bool],
    clock: Clock = time.time,
) -> list[Look]:
    """Look again and again, until all have ended or `wait` says to stop; a ledger that is away is asked again.

    Args:
        ledger: where they are kept.
        names: of the rollouts.
        every_s: time between two looks.
        tell: is handed every look.
        wait: passes the time; true to stop.
        clock: Unix time.
    """
    last: dict[str, Look] = {}
    failure: StoreError | None = None
    while True:
        try:
            for name in names:
                last[name] = look(ledger, name, clock)
                tell(last[name])
            failure = None
        except StoreError as error:
            failure = error
        done = len(last) == len(names) and all(one.state.has_ended for one in last.values())
        if (done and failure is None) or wait(every_s):
            break
    if failure is not None and not last:
        raise failure
    return list(last.values())
