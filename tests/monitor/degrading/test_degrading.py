"""Degradation goes down and up with hysteresis, breakers probe, and probes of levers name the guilty one."""

from __future__ import annotations

import contextlib
import random
import threading

import pytest
from services import RedisServer

from pyrometer.errors import InputError
from pyrometer.monitor.degrading.breaker import CircuitBreaker
from pyrometer.monitor.degrading.ladder import Degradation, Ladder, Policy, Rung
from pyrometer.monitor.degrading.probes import LEAST, LeverProbes
from pyrometer.monitor.degrading.publishing import RedisEvents
from pyrometer.monitor.tick import Event, Source, Tick
from pyrometer.record import from_json, to_json

POLICY = Policy(
    alarms=("infer.*",),
    rungs=[Rung(name="tuned"), Rung(name="eager", action="eager"), Rung(name="small", action="small"), Rung(name="shed", action="shed")],
    down_s=5,
    up_s=60,
    relapse_s=300,
)  # fmt: skip
ON = ["infer.latency/cusum"]


def walk(ladder, alarms, times):
    return [(now_s, moved.after) for now_s in times if (moved := ladder.update(float(now_s), alarms))]


def test_it_goes_down_a_rung_at_a_time_and_up_again():
    ladder = Ladder(POLICY)
    assert walk(ladder, ON, range(30)) == [(5, "eager"), (10, "small"), (15, "shed")]
    assert walk(ladder, [], range(30, 300)) == [(90, "small"), (150, "eager"), (210, "tuned")]


def test_short_alarms_and_alarms_of_others_move_nothing():
    ladder = Ladder(POLICY)
    assert walk(ladder, ["other.latency/cusum"], range(100)) == []
    for second in range(0, 100, 4):
        assert walk(ladder, ON, range(second, second + 3)) + walk(ladder, [], [second + 3]) == []


def test_a_relapse_holds_the_rung_twice_as_long():
    ladder = Ladder(POLICY)
    assert walk(ladder, ON, range(6)) == [(5, "eager")]
    assert walk(ladder, [], range(6, 100)) == [(66, "tuned")]
    assert walk(ladder, ON, range(100, 106)) == [(105, "eager")]
    assert walk(ladder, [], range(106, 300)) == [(226, "tuned")]


def test_actions_are_carried_out_published_and_may_fail():
    done, published, alarms = [], [], list(ON)

    def broken(_on):
        raise OSError("no")

    actions = {"eager": done.append, "small": broken, "shed": broken}
    degradation = Degradation(POLICY, actions, lambda: alarms, published.append)
    events = [event for second in range(11) for event in degradation.tick(Tick(at_s=float(second)))]
    assert [event.event for event in events] == ["degraded", "degraded"]
    assert published == events
    assert degradation.faults == ["OSError: no"]
    alarms.clear()
    events = [event for second in range(11, 200) for event in degradation.tick(Tick(at_s=float(second)))]
    assert [event.fields["after"] for event in events] == ["eager", "tuned"]
    assert done == [True, False]


def test_a_policy_is_data_and_bad_ones_are_refused():
    assert from_json(Policy, to_json(POLICY)) == POLICY
    for act in (
        lambda: Policy(rungs=[Rung(name="a")]),
        lambda: Policy(rungs=POLICY.rungs, down_s=60, up_s=5),
        lambda: Degradation(POLICY, {}, list),
        lambda: CircuitBreaker(failures=0),
        lambda: LeverProbes([]),
    ):
        with pytest.raises(InputError, match="legal"):
            act()


def breaker(clock, **settings):
    states = []
    return CircuitBreaker(
        failures=3, pause_s=10, probes=2, changed=states.append, clock=lambda: clock[0], **settings
    ), states


def fail():
    raise ValueError("bad")


def test_a_breaker_opens_probes_and_closes():
    clock = [0.0]
    made, states = breaker(clock)
    assert [made.call(fail, lambda: "safe") for _ in range(3)] == ["safe"] * 3
    assert made.call(lambda: "fast", lambda: "safe") == "safe"
    clock[0] = 10.0
    assert made.call(fail, lambda: "safe") == "safe"
    clock[0] = 29.0  # the pause is doubled
    assert not made.allows()
    clock[0] = 30.0
    assert [made.call(lambda: "fast", lambda: "safe") for _ in range(3)] == ["fast"] * 3
    assert states == ["open", "half-open", "open", "half-open", "closed"]


def test_one_probe_at_a_time():
    clock = [0.0]
    made, _ = breaker(clock)
    for _ in range(3):
        made.call(fail, lambda: None)
    clock[0] = 10.0
    allowed = []
    gate = threading.Barrier(8)

    def ask():
        gate.wait()
        allowed.append(made.allows())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 1


def test_successes_between_failures_keep_it_closed():
    made, states = breaker([0.0])
    for _ in range(20):
        made.call(fail, lambda: None)
        made.call(fail, lambda: None)
        made.call(lambda: None, lambda: None)
    assert states == []


def simulated(seed, guilty, batches=30_000):
    rng = random.Random(seed)
    probes = LeverProbes(["compile", "int8", "cudagraph"], share=0.06, rng=random.Random(seed + 1))
    ever = set()
    for batch in range(batches):
        off = probes.choose()
        latency = 0.01 * (1.0 if off == guilty else 1.15 if guilty else 1.0) * rng.lognormvariate(0, 0.3)
        probes.record(off, latency)
        if batch % 500 == 0:
            ever |= {one.lever for one in probes.effects() if one.is_at_fault}
    return ever | {one.lever for one in probes.effects() if one.is_at_fault}


def test_the_guilty_lever_is_named_and_innocent_ones_are_not():
    assert simulated(1, "int8") == {"int8"}


def test_watching_all_the_time_accuses_nobody_wrongly():
    assert sum(bool(simulated(seed, None, 8000)) for seed in range(40)) <= 2


def test_few_batches_say_nothing():
    probes = LeverProbes(["a"], share=0.5, rng=random.Random(0))
    for _ in range(LEAST - 1):
        probes.record("a", 0.01)
        probes.record(None, 0.02)
    assert probes.effects()[0].ratio is None


def test_other_processes_read_what_was_published_and_an_outage_is_counted(tmp_path):
    server = RedisServer(tmp_path).begin()
    try:
        events = RedisEvents(server.url, Source(model="m"))
        events.publish(Event(at_s=1.0, event="degraded", fields={"after": "eager"}))
        with contextlib.closing(RedisEvents(server.url, Source())) as follower:
            ((entry, source, event),) = follower.read()
        assert (source.model, event.event, event.fields) == ("m", "degraded", {"after": "eager"})
        assert events.read(entry) == []
        server.stop()
        events.publish(Event(at_s=2.0, event="recovered"))
        assert events.num_failed == 1
        server.begin()
        events.publish(Event(at_s=3.0, event="degraded"))
        assert [event.at_s for _, _, event in events.read()] == [3.0]  # the first was lost with the server
        assert events.num_failed == 1
        events.close()
    finally:
        server.stop()


def test_a_ladder_moves_while_redis_is_away(tmp_path):
    server = RedisServer(tmp_path).begin()
    events = RedisEvents(server.url, Source(model="m"))
    server.stop()
    done, alarms = [], list(ON)
    quick = Policy(rungs=[Rung(name="tuned"), Rung(name="eager", action="eager")], down_s=0, up_s=1)
    degradation = Degradation(quick, {"eager": done.append}, lambda: alarms, events.publish)
    degradation.tick(Tick(at_s=1.0))
    alarms.clear()
    degradation.tick(Tick(at_s=2.0))
    degradation.tick(Tick(at_s=4.0))
    assert (done, events.num_failed, degradation.faults) == ([True, False], 2, [])
    events.close()
