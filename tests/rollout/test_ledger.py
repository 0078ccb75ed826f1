"""Where rollouts are kept: SQLite, PostgreSQL and Redis alike."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from rollouts import counts, make_plan

from pyrometer.errors import InputError, StoreError, UsageError
from pyrometer.rollout.controller import command, look, start_rollout
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.observed import NEW, OLD, Reported
from pyrometer.rollout.state import obey


def begin(ledger, **fields):
    return start_rollout(ledger, make_plan(**fields), "me", lambda: 1000.0)


def test_state_decisions_and_counts_are_read_as_they_were_written(ledger, location):
    state = begin(ledger)
    report = Reported(epoch=0, arm=NEW, reporter="host:1", counts=counts(10, 1))
    ledger.report("perception", 1, [report])
    again = open_ledger(location)
    assert again.read("perception") == state
    assert again.names() == ["perception"]
    assert [(one.number, one.action, one.by) for one in again.decisions("perception")] == [(1, "start", "me")]
    assert again.reports("perception", 1) == [report]
    assert again.read("other") is None
    assert again.reports("perception", 2) == again.decisions("other") == []


def test_a_report_that_is_sent_again_takes_the_place_of_the_one_before(ledger):
    begin(ledger)
    for num in (10, 10, 25):
        sent = [Reported(epoch=0, arm=arm, reporter="host:1", counts=counts(num)) for arm in (NEW, OLD)]
        ledger.report("perception", 1, sent)
    ledger.report("perception", 1, [Reported(epoch=0, arm=NEW, reporter="host:2", counts=counts(5))])
    kept = ledger.reports("perception", 1)
    assert sorted((one.reporter, one.arm, one.counts.num) for one in kept) == [
        ("host:1", NEW, 25), ("host:1", OLD, 25), ("host:2", NEW, 5),
    ]  # fmt: skip


def test_who_does_not_know_the_version_changes_nothing(ledger):
    state = begin(ledger)
    paused, decisions = obey(state, "pause", 1001.0, "one")
    paused = msgspec.structs.replace(paused, version=2)
    assert ledger.replace("perception", 1, paused, decisions)
    other, others = obey(state, "abort", 1002.0, "two")
    assert not ledger.replace("perception", 1, msgspec.structs.replace(other, version=2), others)
    assert not ledger.replace("perception", None, state, [])
    assert not ledger.replace("unknown", 1, state, [])
    assert ledger.read("perception") == paused
    assert [one.action for one in ledger.decisions("perception")] == ["start", "pause"]


def test_many_controllers_decide_each_thing_once(ledger, location):
    """Eight of them look at a rollout that is safe at each look."""
    begin(ledger, min_s=0.0, min_samples=1)
    for epoch, share in enumerate([0.01, 0.05, 0.2, 0.5]):
        new = round(200_000 * share)
        sent = [Reported(epoch=epoch, arm=NEW, reporter="a", counts=counts(new, new // 500)),
                Reported(epoch=epoch, arm=OLD, reporter="a", counts=counts(200_000 - new, (200_000 - new) // 500))]  # fmt: skip
        ledger.report("perception", 1, sent)
    together = threading.Barrier(8)

    def control(_):
        own, made = open_ledger(location), []
        together.wait()
        while not (seen := look(own, "perception", lambda: 2000.0)).state.has_ended:
            made += seen.decisions
        return made + seen.decisions

    with ThreadPoolExecutor(8) as pool:
        made = [one for decisions in pool.map(control, range(8)) for one in decisions]
    state, log = ledger.read("perception"), ledger.decisions("perception")
    assert (state.status, state.shares) == ("promoted", [0.01, 0.05, 0.2, 0.5, 1.0])
    assert [one.number for one in log] == [1, 2, 3, 4, 5]
    assert sorted(one.number for one in made) == [2, 3, 4, 5]


def test_orders_reach_a_rollout_and_its_log(ledger):
    begin(ledger)
    command(ledger, "perception", "pause", "ann", reason="lunch", clock=lambda: 1001.0)
    command(ledger, "perception", "pause", "ann", clock=lambda: 1002.0)  # changes nothing
    ended = command(ledger, "perception", "abort", "bob", clock=lambda: 1003.0)
    assert (ended.status, ended.share) == ("aborted", 0.0)
    said = [(one.action, one.by, one.reason) for one in ledger.decisions("perception")]
    assert said[1:] == [("pause", "ann", "lunch"), ("abort", "bob", "by command")]
    with pytest.raises(UsageError, match="has ended"):
        command(ledger, "perception", "approve", "ann")


def test_another_attempt_counts_anew_and_keeps_the_log(ledger):
    begin(ledger)
    ledger.report(
        "perception", 1, [Reported(epoch=0, arm=NEW, reporter="a", counts=counts(30, not_finite=3))]
    )
    seen = look(ledger, "perception", lambda: 1001.0)
    assert (seen.state.status, seen.state.failures) == ("rolled back", {"v2": 1})
    again = start_rollout(ledger, make_plan(), "me", lambda: 1002.0)
    assert (again.attempt, again.shares, again.status) == (2, [0.01], "running")
    assert look(ledger, "perception", lambda: 1003.0).judged.num_new == 0
    assert [one.attempt for one in ledger.decisions("perception")] == [1, 1, 2]


def test_what_is_not_there_is_told_in_one_line(ledger):
    begin(ledger)
    with pytest.raises(InputError, match=r"rollout 'perceptoin': there is none; legal are perception"):
        look(ledger, "perceptoin")
    with pytest.raises(UsageError, match="under way"):
        begin(ledger)


def test_a_redis_that_is_away_is_told_in_one_line():
    ledger = open_ledger("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="is the server running") as caught:
        ledger.read("perception")
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="legal is redis://"):
        open_ledger("redis://[")
