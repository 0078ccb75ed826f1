"""How a rollout moves: a pure function."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollouts import make_plan

from pyrometer.errors import UsageError
from pyrometer.rollout.judging.judgement import Judgement
from pyrometer.rollout.state import ENDED, MOST_POINTS, obey, remember, start, step


def says(outcome, num=1000):
    return Judgement(outcome=outcome, reason=f"it is {outcome}", num_new=num)


def begun(**fields):
    return start(make_plan(**fields), 1000.0, "me")[0]


def run(state, *looks, now=1000.0):
    done = []
    for outcome, passed in looks:
        now += passed
        state, decisions = step(state, says(outcome), now)
        done += decisions
    return state, done


def test_safe_stages_follow_each_other_to_the_end():
    state, decisions = run(begun(), *[("safe", 11)] * 4)
    assert (state.status, state.shares) == ("promoted", [0.01, 0.05, 0.2, 0.5, 1.0])
    assert [one.action for one in decisions] == ["promote", "promote", "promote", "finish"]
    assert [one.number for one in decisions] == [2, 3, 4, 5]
    assert run(state, ("worse", 11)) == (state, [])


def test_a_stage_takes_its_time_and_its_samples():
    state = begun()
    assert run(state, ("safe", 9))[1] == []
    assert step(state, says("safe", num=99), 1020.0)[1] == []
    assert step(state, says("safe", num=100), 1020.0)[0].share == 0.05


@given(
    st.lists(
        st.tuples(st.sampled_from(["undecided", "not proved", "mismatch"]), st.floats(0, 60)), max_size=30
    )
)
def test_undecided_never_promotes(looks):
    state, _ = run(begun(), *looks)
    assert state.share == 0.01


steps = st.lists(
    st.tuples(st.sampled_from(["worse", "safe", "undecided", "mismatch"]), st.floats(-1e9, 1e9)), max_size=40
)


@given(steps)
def test_shares_rise_stage_by_stage_or_fall_to_nothing(looks):
    state, decisions = run(begun(), *looks)
    stages = state.plan.stages
    assert state.shares == [*stages[: len(state.shares)]] or (
        state.shares[-1] == 0.0 and state.shares[:-1] == [*stages[: len(state.shares) - 1]]
    )
    assert [one.number for one in decisions] == list(range(2, state.num_decisions + 1))
    assert all(one.reason for one in decisions)
    assert (state.share in {0.0, 1.0}) == (state.status in ENDED)


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_is_set_makes_no_stage_shorter(jump):
    state = begun(min_s=100.0, deadline_s=5000.0)
    state, decisions = run(state, ("safe", 30), ("safe", jump))
    assert decisions == []
    assert state.elapsed_s <= 90  # one look counts as a minute at most
    state, decisions = run(state, ("safe", 60), ("safe", 60), now=1030 + jump)
    assert [one.action for one in decisions] == ["promote"]


def test_harm_takes_the_version_back_at_any_time():
    for state in (
        begun(),
        obey(begun(), "pause", 1001.0, "me")[0],
        run(begun(gates=[0.01]), ("safe", 20))[0],
    ):
        back, (decision,) = step(state, says("worse"), 1030.0)
        assert (back.status, back.share, decision.action, decision.reason) == (
            "rolled back",
            0.0,
            "roll back",
            "it is worse",
        )
        assert back.failures == {"v2": 1}


def test_a_gate_waits_for_approval_and_approval_alone_opens_nothing():
    state, decisions = run(begun(gates=[0.01]), ("safe", 20), ("safe", 20))
    assert (state.status, [one.action for one in decisions]) == ("waiting", ["wait"])
    assert "rollout advance perception" in decisions[0].reason
    state, (approved,) = obey(state, "approve", 1041.0, "ann", "looked at it")
    assert (approved.by, approved.reason) == ("ann", "looked at it")
    assert run(state, ("undecided", 20), now=1041.0)[0].share == 0.01
    assert run(state, ("safe", 20), now=1041.0)[0].share == 0.05


def test_what_has_no_gate_cannot_be_waved_through():
    with pytest.raises(UsageError, match="only evidence moves it on"):
        obey(begun(), "approve", 1001.0, "me")


def test_a_pause_holds_until_it_is_lifted():
    paused, _ = obey(begun(), "pause", 1001.0, "me")
    assert run(paused, ("safe", 60))[0].share == 0.01
    resumed, (decision,) = obey(paused, "approve", 1060.0, "me")
    assert decision.action == "resume"
    assert run(resumed, ("safe", 60), now=1060.0)[0].share == 0.05


def test_wrong_shares_pause_it():
    state, (decision,) = run(begun(), ("mismatch", 5))
    assert (state.status, decision.action) == ("paused", "pause")


def test_no_verdict_for_too_long_takes_it_back_but_a_gate_may_wait():
    state, decisions = run(begun(deadline_s=100.0), *[("undecided", 60)] * 2)
    assert (state.status, decisions[0].reason) == (
        "rolled back",
        "no verdict within 1 min 40 s: it is undecided",
    )
    assert run(begun(deadline_s=100.0, gates=[0.01]), *[("safe", 60)] * 3)[0].status == "waiting"


def test_replicas_begin_with_a_calm_period_and_go_on_unproved_only_by_hand():
    state = begun(assignment="replicas", min_s=10.0)
    assert (state.status, step(state, says("not proved"), 1020.0, calm_blocks=39)[1]) == ("calm", [])
    state, (decision,) = step(state, says("not proved"), 1020.0, calm_blocks=40)
    assert (state.status, state.shares, decision.share) == ("running", [0.01, 0.01], 0.01)
    assert run(state, ("not proved", 60), now=1020.0)[0].stage == 0
    approved, _ = obey(state, "approve", 1021.0, "me")
    state, (decision,) = step(approved, says("not proved", num=0), 1060.0)
    assert state.share == 0.05
    assert decision.reason == "approved by hand and not proved: it is not proved"


def forever(reason="blocks go with each other"):
    return Judgement(outcome="not proved", reason=reason, is_final=True)


def test_replicas_that_nothing_proves_wait_for_somebody_and_are_told_once():
    state = begun(assignment="replicas", min_s=10.0)
    state, (decision,) = step(state, forever(), 1020.0)
    assert (state.status, state.is_calm, decision.action) == ("waiting", True, "wait")
    assert decision.reason.startswith("blocks go with each other; this stage is left only after approval")
    assert step(state, forever(), 1030.0)[1] == []
    state, _ = obey(state, "approve", 1031.0, "me")
    state, (decision,) = step(state, forever(), 1040.0)
    assert (state.status, state.is_calm, state.share) == ("running", False, 0.01)
    assert decision.reason.startswith("approved by hand and not proved: blocks go with each other")
    state, (decision,) = step(state, forever("harm to latency"), 1060.0)
    assert (state.status, decision.action) == ("waiting", "wait")
    assert step(state, says("safe"), 1070.0)[0].share == 0.05  # evidence may come after all
    assert step(state, says("worse"), 1070.0)[0].status == "rolled back"


def test_a_pause_of_the_calm_period_stays_calm():
    state, _ = obey(begun(assignment="replicas"), "pause", 1001.0, "me")
    assert state.is_calm
    assert obey(state, "approve", 1002.0, "me")[0].status == "calm"


def test_a_version_that_failed_too_often_is_in_quarantine():
    state = begun(max_failures=2)
    for attempt in (2, 3):
        failed, _ = step(state, says("worse"), 1001.0)
        if attempt == 3:
            break
        state, _ = start(state.plan, 1002.0, "me", failed)
        assert (state.attempt, state.shares) == (attempt, [0.01])
    with pytest.raises(UsageError, match="quarantine"):
        start(state.plan, 1003.0, "me", failed)
    other, _ = start(make_plan(new="v3"), 1003.0, "me", failed)
    assert (other.plan.new, other.failures) == ("v3", {"v2": 2})


def test_one_rollout_of_a_name_at_a_time_and_none_after_its_end():
    state = begun()
    with pytest.raises(UsageError, match="under way"):
        start(make_plan(new="v3"), 1001.0, "me", state)
    ended, (decision,) = obey(state, "abort", 1001.0, "me", "no need")
    assert (ended.status, ended.share, ended.failures, decision.reason) == ("aborted", 0.0, {}, "no need")
    with pytest.raises(UsageError, match="has ended"):
        obey(ended, "pause", 1002.0, "me")


def test_the_course_stays_bounded_and_keeps_its_beginning_and_end():
    from pyrometer.rollout.judging.judgement import MetricTest

    state = begun()
    test = MetricTest(metric="errors", needed=20, margin=2, outcome="undecided", estimate=1.0)
    for num in range(1, 1000):
        state = remember(state, Judgement(outcome="undecided", reason="", tests=[test]), num)
        assert remember(state, Judgement(outcome="undecided", reason="", tests=[test]), num) is state
    assert len(state.course) <= MOST_POINTS + 1
    assert (state.course[0].num, state.course[-1].num) == (1, 999)
    assert all(a.num < b.num for a, b in pairwise(state.course))
