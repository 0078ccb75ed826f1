"""The part of a rollout in a process that serves."""

from __future__ import annotations

import random

import msgspec
import pytest
from rollouts import make_plan

from pyrometer.errors import InputError, StoreError
from pyrometer.rollout.agent import UNCOUNTED, Agent
from pyrometer.rollout.controller import command, look, start_rollout
from pyrometer.rollout.ledger import open_ledger
from pyrometer.rollout.levers import LeverSwitches, lever_plans
from pyrometer.rollout.observed import NEW, OLD, observed
from pyrometer.rollout.router import Route
from pyrometer.rollout.state import obey


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path):
    return open_ledger(tmp_path / "store")


def begin(ledger, clock, **fields):
    start_rollout(ledger, make_plan(stages=[0.3, 1.0], **fields), "me", clock)
    return Agent(ledger, "perception", rng=random.Random(1), clock=clock, wall=clock)


def totals(ledger, attempt=1):
    state = ledger.read("perception")
    (epoch, *_) = observed(state.shares, ledger.reports("perception", attempt), keep_reports=False).epochs
    return epoch.new, epoch.old


def test_batches_are_routed_counted_and_reported(ledger, clock):
    agent = begin(ledger, clock)
    for number in range(1000):
        route = agent.route()
        agent.observe(
            route,
            0.01,
            failed=number % 100 == 0,
            finite=number % 50 != 0,
            events=("detections",),
            values={"score": 2.0},
        )
        if number % 250 == 0:
            assert agent.tick()
    agent.tick()
    new, old = totals(ledger)
    assert new.num + old.num == 1000
    assert 220 < new.num < 380
    assert new.num_of("errors") + old.num_of("errors") == 10
    assert new.num_of("not-finite") + old.num_of("not-finite") == 20
    assert old.num_of("detections") == sum(old.buckets("score").values()) == old.num


def test_a_block_is_counted_with_its_time_and_what_it_raises(ledger, clock):
    agent = begin(ledger, clock)
    with agent.observing(agent.route()):
        clock.now += 0.25
    for error in (ValueError("no"), MemoryError()):
        with pytest.raises(type(error)), agent.observing(agent.route()):
            raise error
    agent.tick()
    both = totals(ledger)
    assert sum(one.num_of("errors") for one in both) == 2
    assert sum(one.num_of("out-of-memory") for one in both) == 1
    assert sum(sum(one.buckets("latency").values()) for one in both) == 1


def test_processes_follow_the_share_and_a_rollback(ledger, clock):
    agent = begin(ledger, clock)
    assert {agent.route().arm for _ in range(200)} == {"v1", "v2"}
    command(ledger, "perception", "abort", "me", clock=clock)
    agent.tick()
    assert agent.router.weights == {"v1": 1.0, "v2": 0.0}
    assert {agent.route().arm for _ in range(200)} == {"v1"}


def test_what_began_under_one_share_is_counted_under_it(ledger, clock):
    agent = begin(ledger, clock)
    early = agent.route()
    state, decisions = obey(ledger.read("perception"), "abort", clock(), "me")
    assert ledger.replace("perception", 1, state, decisions)
    agent.tick()
    agent.observe(early, 0.01)
    agent.tick()
    assert sum(one.num for one in totals(ledger)) == 1
    state = start_rollout(ledger, make_plan(), "me", clock)
    agent.tick()
    agent.observe(early, 0.01)  # of an attempt that is over
    agent.tick()
    assert sum(one.num for one in totals(ledger, state.attempt)) == 0


def test_a_process_that_hears_nothing_serves_the_old_version_after_its_lease(ledger, clock, monkeypatch):
    agent = begin(ledger, clock, lease_s=30.0)
    agent.observe(agent.route(), 0.01)

    def away(*_given):
        raise StoreError("store: away")

    with monkeypatch.context() as broken:
        broken.setattr(ledger, "read", away)
        clock.now += 29
        assert not agent.tick()
        assert {agent.route().arm for _ in range(200)} == {"v1", "v2"}
        clock.now += 2
        assert {agent.route() for _ in range(200)} == {("v1", None, UNCOUNTED)}
        assert (agent.num_failed, agent.last_error) == (1, "store: away")
    assert agent.tick()
    assert {agent.route().arm for _ in range(200)} == {"v1", "v2"}
    assert sum(one.num for one in totals(ledger)) == 1


def test_units_keep_their_version_and_count_once(ledger, clock):
    agent = begin(ledger, clock, assignment="unit")
    routes = [(unit, agent.route(f"vehicle-{unit}")) for _ in range(3) for unit in range(300)]
    for _, route in routes:
        agent.observe(route, 0.01)
    assert all(len({route.arm for unit, route in routes if unit == one}) == 1 for one in range(300))
    agent.tick()
    new, old = totals(ledger)
    assert new.num + old.num == 300
    with pytest.raises(InputError, match="sticky"):
        agent.route()


def test_processes_that_see_the_same_units_share_them_out(ledger, clock):
    begin(ledger, clock, assignment="unit")
    agents = [Agent(ledger, "perception", seat=(seat, 3), clock=clock) for seat in range(3)]
    for agent in agents:
        for unit in range(300):
            agent.observe(agent.route(unit), 0.01)
        agent.tick()
    assert sum(one.num for one in totals(ledger)) == 300


@pytest.mark.parametrize(("share", "rest"), [(0.1, 0.8), (0.5, 0.0)])
def test_a_second_copy_of_the_old_version_is_what_the_new_one_is_compared_with(ledger, clock, share, rest):
    start_rollout(ledger, make_plan(stages=[share, 1.0], control="v1b"), "me", clock)
    agent = Agent(ledger, "perception", rng=random.Random(1), clock=clock)
    assert agent.router.weights == pytest.approx({"v1": rest, "v2": share, "v1b": share})
    for _ in range(5000):
        route = agent.route()
        agent.observe(route, {"v1": 0.010, "v1b": 0.017, "v2": 0.017}[route.arm])  # cold ones are slow
    agent.tick()
    new, old = totals(ledger)
    assert 0.84 * 5000 * share < min(new.num, old.num) <= max(new.num, old.num) < 1.16 * 5000 * share
    found = look(ledger, "perception", clock).judged
    assert [test.outcome for test in found.tests if test.metric == "latency"] == ["safe"]
    assert found.mismatch_e_value < 1
    command(ledger, "perception", "abort", "me", clock=clock)
    agent.tick()
    assert {agent.route().arm for _ in range(100)} == {"v1"}


def test_a_shadow_is_counted_as_the_new_version_and_never_answers(ledger, clock):
    start_rollout(ledger, make_plan(stages=[0.5, 1.0]), "me", clock)
    agent = Agent(ledger, "perception", shadow=True, rng=random.Random(1), clock=clock)
    for _ in range(100):
        route = agent.route()
        assert route.arm == "v1"
        if route.shadow:
            agent.observe(route, 0.01, agrees=False)
    agent.tick()
    new, old = totals(ledger)
    assert new.num == new.num_of("compared") == new.num_of("disagreed") > 30
    assert old.num == 0


def test_replicas_run_the_old_version_while_calm_and_count_in_blocks(ledger, clock):
    start_rollout(ledger, make_plan(assignment="replicas", block_s=10.0), "me", clock)
    agents = {arm: Agent(ledger, "perception", replica=arm, clock=clock, wall=clock) for arm in (OLD, NEW)}
    for _ in range(4):
        for agent in agents.values():
            assert agent.route().arm == "v1"
            agent.observe(agent.route(), 0.01)
            agent.tick()
        clock.now += 10
    kept = ledger.reports("perception", 1)
    assert sorted({(one.arm, one.block) for one in kept}) == [
        (arm, block) for arm in (NEW, OLD) for block in range(100, 104)
    ]
    assert len(agents[NEW]._tallies) < 4
    state = ledger.read("perception")
    assert look(ledger, "perception", clock).judged.outcome == "not proved"
    assert state.status == "calm"


def test_a_replica_leaves_the_new_version_when_it_is_taken_back_or_the_store_is_away(ledger, clock):
    start_rollout(ledger, make_plan(assignment="replicas", lease_s=60.0), "me", clock)
    agent = Agent(ledger, "perception", replica=NEW, clock=clock, wall=clock)
    command(ledger, "perception", "pause", "me", clock=clock)
    agent.tick()
    assert agent.route().arm == "v1"  # calm, also while paused
    state = ledger.read("perception")
    running = msgspec.structs.replace(state, status="running", shares=[0.01, 0.01], version=state.version + 1)
    assert ledger.replace("perception", state.version, running, [])
    agent.tick()
    assert agent.route().arm == "v2"
    clock.now += 61
    assert agent.route() == Route("v1", None, UNCOUNTED)
    agent.tick()
    assert agent.route().arm == "v2"
    command(ledger, "perception", "abort", "me", clock=clock)
    agent.tick()
    assert agent.route().arm == "v1"


def test_the_lever_at_fault_is_taken_out_and_the_others_stay(ledger, clock):
    levers = ["compile", "channels_last", "int8"]
    plan = make_plan(stages=[0.2, 0.5, 1.0], min_s=0.0)
    plans = lever_plans(plan, levers)
    assert sum(one.alpha for one in plans) == pytest.approx(plan.alpha)
    for one in plans:
        start_rollout(ledger, one, "me", clock)
    switches = LeverSwitches(ledger, "perception", levers, random.Random(3))
    noise = random.Random(4)
    for _ in range(12):
        for _ in range(1500):
            routes = switches.choose()
            on = switches.on(routes)
            factor = (0.8 if "compile" in on else 1.0) * (1.15 if "int8" in on else 1.0)
            switches.observe(routes, 0.01 * factor * noise.lognormvariate(0, 0.3))
        assert switches.tick()
        clock.now += 10
        for one in plans:
            look(ledger, one.name, clock)
    found = {lever: ledger.read(f"perception/{lever}").status for lever in levers}
    assert found["int8"] == "rolled back"
    assert "rolled back" not in {found["compile"], found["channels_last"]}
    switches.tick()
    assert all("int8" not in switches.on(switches.choose()) for _ in range(200))
