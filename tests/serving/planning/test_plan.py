"""Plans replay requests through the queue of the server; what they say is held against courses whose answer is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pyrometer.errors import InputError
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.service_times import Pace, ServicePoint
from pyrometer.serving.planning.arrivals import Arrival, read_arrivals, recorded
from pyrometer.serving.planning.course import Course
from pyrometer.serving.planning.interval import Interval, measured, of_replays
from pyrometer.serving.planning.plan import Model, Trial, Tried, evaluate, plan
from pyrometer.serving.planning.replay import ServiceDraws, Shaped, replay
from pyrometer.serving.running.shaping import Shaping
from pyrometer.serving.running.signature import TensorSpec

ALIKE = Shaped(lambda _: "", lambda _: ("", 1.0), lambda _: 1.0)
FIXED_S, ROW_S = 0.010, 0.001
POINTS = [ServicePoint(bucket="", rows=rows, samples_s=[FIXED_S + ROW_S * rows] * 3) for rows in (1, 8, 32)]
MODEL = Model(POINTS, [], None, ())
FEW = 4000


def course(times, policy):
    arrivals = [Arrival(at_s) for at_s in times]
    return replay(arrivals, policy, ALIKE, ServiceDraws(POINTS), np.random.default_rng(0))


def planned(arrivals, own, *, model=MODEL, slower=1.0):
    """A plan whose trial took what replays of it take, or so many times as long."""
    some = arrivals.draw(np.random.default_rng(1), 0)[:400]
    shapes = "alike" if model.shaping is None else "buckets"
    known = evaluate(model, recorded(some), own, name="as set", shapes=shapes, replays=8)
    p50_s, p99_s = (
        Interval(value=slower * one.value, low=slower * one.value / 1.1, high=slower * one.value * 1.2)
        for one in (known.p50_s, known.p99_s)
    )
    trial = Trial(num_requests=len(some), span_s=some[-1].at_s, p50_s=p50_s, p99_s=p99_s)
    return plan(model, arrivals, own, Tried(some, trial), requests=FEW)


def test_a_lone_request_waits_for_nobody():
    found = course([0.0, 1.0], BatchPolicy())
    assert found.latencies_s.tolist() == pytest.approx([FIXED_S + ROW_S] * 2)
    assert found.num_batches == 2


def test_requests_that_come_while_the_model_runs_share_the_next_batch():
    found = course([0.0, 0.001, 0.002], BatchPolicy())
    first_s = FIXED_S + ROW_S
    second_s = first_s + FIXED_S + 2 * ROW_S
    assert found.latencies_s.tolist() == pytest.approx([first_s, second_s - 0.001, second_s - 0.002])
    assert (found.num_batches, found.rows) == (2, 3)


def test_a_policy_that_waits_pays_for_it():
    found = course([0.0, 0.004], BatchPolicy(flush_idle=False, wait_s=0.005))
    done_s = 0.005 + FIXED_S + 2 * ROW_S
    assert found.latencies_s.tolist() == pytest.approx([done_s, done_s - 0.004])


def test_a_model_that_had_nothing_to_do_takes_longer_and_one_at_work_does_not():
    points = [ServicePoint(bucket="", rows=1, samples_s=[0.1, 0.3])]
    draws = ServiceDraws(points, paces=[Pace(0.0, 0.9), Pace(0.0, 0.0, at_once=True)] * 3)
    arrivals = [Arrival(at_s) for at_s in (0.0, 0.2, 1.0)]
    found = replay(arrivals, BatchPolicy(), ALIKE, draws, np.random.default_rng(0))
    assert found.latencies_s.tolist() == pytest.approx([0.3, 0.3 - 0.2 + 0.1, 0.3])


def test_what_finds_no_room_is_counted():
    found = course([0.0] * 50, BatchPolicy(most_rows=8, most_waiting=8))
    assert found.num_refused == 42
    assert len(found.latencies_s) == 8


@given(
    times=st.lists(st.floats(0, 2), min_size=1, max_size=60).map(sorted),
    policy=st.builds(
        BatchPolicy,
        most_rows=st.integers(1, 8),
        flush_idle=st.booleans(),
        wait_s=st.floats(0, 0.05),
        most_waiting=st.integers(8, 40),
    ),
)
def test_every_request_is_answered_or_refused_and_none_before_its_service_time(times, policy):
    found = course(times, policy)
    assert len(found.latencies_s) + found.num_refused == len(times)
    assert found.rows == len(found.latencies_s)
    assert all(latency >= FIXED_S + ROW_S - 1e-9 for latency in found.latencies_s)
    assert found.busy_s <= found.span_s + 1e-9


def test_the_mean_wait_agrees_with_theory():
    """One server without batching, Poisson arrivals, constant service, half of the time busy: half a service time (M/D/1)."""
    service_s = FIXED_S + ROW_S
    rate = 0.5 / service_s
    arrivals = read_arrivals(f"poisson:{rate}:200s").draw(np.random.default_rng(3), 0)
    found = replay(
        arrivals,
        BatchPolicy(most_rows=1, most_waiting=5000),
        ALIKE,
        ServiceDraws(POINTS),
        np.random.default_rng(0),
    )
    waits_s = found.latencies_s - service_s
    assert waits_s.mean() == pytest.approx(0.5 * service_s, rel=0.1)


def test_the_interval_holds_what_another_course_gives():
    """The promise of the plan, on courses that it has not seen."""
    arrivals = read_arrivals("poisson:300:4s")
    predicted = evaluate(MODEL, arrivals, BatchPolicy(), name="as set", shapes="alike", replays=40)
    held = 0
    for seed in range(100, 150):
        random = np.random.default_rng(seed)
        found = replay(arrivals.draw(random, 0), BatchPolicy(), ALIKE, ServiceDraws(POINTS), random)
        held += predicted.p99_s.holds(float(np.quantile(found.latencies_s, 0.99)))
    assert held >= 45


def test_batching_is_recommended_where_single_requests_do_not_keep_up():
    found = planned(read_arrivals("poisson:200:5s"), BatchPolicy(most_rows=1))
    assert not found.policies[0].keeps_up
    larger = planned(read_arrivals("poisson:200:5s"), BatchPolicy(most_rows=32))
    assert larger.recommended == "as set"
    assert next(one for one in larger.policies if one.name == "no batching").keeps_up is False


def test_waiting_is_not_recommended_where_requests_are_rare():
    own = BatchPolicy(flush_idle=False, wait_s=0.010)
    found = planned(read_arrivals("poisson:5:60s"), own)
    assert found.recommended.startswith(("at once", "no batching"))
    assert found.sentence.startswith(f"take '{found.recommended}': P99")


def test_nothing_is_recommended_that_does_not_keep_up():
    found = planned(read_arrivals("poisson:2000:3s"), BatchPolicy())
    assert not any(one.keeps_up for one in found.policies)
    assert "add a replica" in found.sentence


@pytest.mark.slow
def test_buckets_waste_less_than_padding_to_the_longest():
    class Echo(nn.Module):
        def forward(self, ids):
            return ids

    shaping = Shaping(Echo(), {"ids": {1: [16, 64, 256]}})
    points = [
        ServicePoint(bucket=str(edge), rows=rows, samples_s=[1e-3 + 1e-5 * edge * rows])
        for edge in (16, 64, 256)
        for rows in (1, 32)
    ]
    model = Model(points, [TensorSpec("ids", torch.int64, (-1, -1))], shaping, ())
    lengths = [8, 12, 15, 40, 250]
    arrivals = read_arrivals("poisson:900:3s", [((1, length),) for length in lengths])
    found = {one.shapes: one for one in planned(arrivals, BatchPolicy(), model=model).policies}
    assert found["buckets"].padding_share < 0.6 * found["longest"].padding_share
    assert found["buckets"].p50_s.value < found["longest"].p50_s.value


def test_rules_make_the_rate_that_they_name():
    random = np.random.default_rng(0)
    for text in ("poisson:100:60s", "bursts:100,20:60s", "diurnal:100:60s"):
        found = read_arrivals(text).draw(random, 0)
        assert len(found) == pytest.approx(6000, rel=0.15)
        assert [one.at_s for one in found] == sorted(one.at_s for one in found)
    times = [one.at_s for one in read_arrivals("diurnal:100:60s").draw(random, 0)]
    middle = sum(20 < at_s < 40 for at_s in times)
    assert middle > 0.45 * len(times)


def test_a_file_of_times_and_shapes_is_read(tmp_path):
    file = tmp_path / "arrivals.csv"
    file.write_text("at_s,shape\n10.5,2x16\n10.0,1x8\n")
    found = read_arrivals(str(file)).draw(np.random.default_rng(0), 0)
    assert found == [Arrival(0.0, ((1, 8),), 1), Arrival(0.5, ((2, 16),), 2)]
    file.write_text("at_s,rows\n1,3\n")
    assert read_arrivals(str(file)).draw(np.random.default_rng(0), 0)[0].rows == 3


def test_the_log_of_a_monitor_is_read(tmp_path, monkeypatch):
    import pyrometer as pm

    monkeypatch.chdir(tmp_path)
    with pm.Monitor(model="m", folder=str(tmp_path / "log"), sample_every=1) as monitor:
        for length in (8, 8, 16):
            with monitor.request("infer") as request:
                request.shape = f"1x{length}"
        with monitor.request("other"):
            pass
        monitor.flush()
    found = read_arrivals(str(tmp_path / "log")).draw(np.random.default_rng(0), 0)
    assert len(found) == 3
    assert {one.shapes for one in found} <= {((1, 8),), ((1, 16),)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("poisson:x", "a rate per second above 0"),
        ("poisson:0", "a rate per second above 0"),
        ("nothing.csv", "cannot be read"),
        ("nowhere", "no such file, and no rule"),
    ],
)
def test_what_is_no_source_of_requests_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        read_arrivals(text)


def test_a_file_without_times_is_refused(tmp_path):
    file = tmp_path / "arrivals.csv"
    file.write_text("when\n1\n")
    with pytest.raises(InputError, match="line 2: legal are columns at_s"):
        read_arrivals(str(file))
    file.write_text("at_s\n")
    with pytest.raises(InputError, match="holds no request"):
        read_arrivals(str(file))


def test_a_record_keeps_its_gaps_when_it_is_shuffled():
    arrivals = [Arrival(float(at_s)) for at_s in np.cumsum(np.tile([0.001] * 9 + [0.1], 30))]
    source = recorded(arrivals)
    random = np.random.default_rng(0)
    assert source.draw(random, 0)[1].at_s == pytest.approx(0.001)
    shuffled = source.draw(random, 1)
    gaps = np.diff([one.at_s for one in shuffled])
    assert len(shuffled) == len(arrivals)
    assert np.mean(gaps > 0.05) == pytest.approx(0.1, abs=0.02)


def test_a_busy_moment_of_the_machine_stays_one():
    """Ranks that were low for a while and high for a while: independent draws would mix them."""
    points = [ServicePoint(bucket="", rows=1, samples_s=[0.001, 0.002])]
    course = [Pace(0.0, rank) for rank in [0.0] * 640 + [0.9] * 640]
    draws = ServiceDraws(points, (), course)
    random = np.random.default_rng(0)
    draws.renew(random)
    shares = [draws.next_pace(random, at_once=False).rank for _ in range(640)]
    taken = np.array([draws.service_s("", 1, share) for share in shares]).reshape(10, 64)
    assert set(taken.ravel()) == {0.001, 0.002}
    assert all(len(set(block)) == 1 for block in taken)


def test_what_comes_while_the_loop_is_late_shares_the_batch():
    arrivals = [Arrival(0.0), Arrival(0.003), Arrival(0.02)]
    draws = ServiceDraws(POINTS, (), [Pace(0.005, 0.0)])
    found = replay(arrivals, BatchPolicy(), ALIKE, draws, np.random.default_rng(0))
    alone_s = found.latencies_s[2] - 0.005
    together_s = found.latencies_s[0] - 0.005
    assert found.num_batches == 2
    assert together_s > alone_s > 0
    assert found.latencies_s[1] == pytest.approx(found.latencies_s[0] - 0.003)


@pytest.mark.parametrize("num", [8, 40])
def test_intervals_hold_another_course_as_often_as_they_say(num):
    """Also of few replays, whose least and most alone enclose too little."""
    random = np.random.default_rng(num)
    held = [
        of_replays(list(np.exp(random.normal(0, 0.5, num)))).holds(float(np.exp(random.normal(0, 0.5))))
        for _ in range(2000)
    ]
    assert 0.93 < np.mean(held) < 0.99


def test_what_replays_of_the_trial_are_off_by_is_taken_out_of_all():
    arrivals = read_arrivals("poisson:100:5s")
    exact, slower = (planned(arrivals, BatchPolicy(), slower=times) for times in (1.0, 3.0))
    for one, other in zip(exact.policies, slower.policies, strict=True):
        assert other.p50_s.value == pytest.approx(3 * one.p50_s.value)
        assert other.p99_s.high == pytest.approx(3 * one.p99_s.high)
    tried, another = slower.policies[0].p99_s, slower.policies[1].p99_s
    assert (tried.value / tried.low, tried.high / tried.value) == pytest.approx((1.1, 1.2))
    assert another.high / another.value > 1.2


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_what_was_measured_tells_another_such_course_where_slow_moments_last(share):
    """Latencies that are slow for a while and quick for a while, as on a machine that others use: courses that were not measured lie within."""
    random = np.random.default_rng(0)

    def course():
        slow = np.repeat(np.exp(random.normal(0, 0.5, 40)), 25)
        return slow * np.exp(random.normal(0, 0.3, 1000))

    held = np.mean([measured(course(), share).holds(np.quantile(course(), share)) for _ in range(200)])
    assert held > 0.9
    alike = measured(np.exp(random.normal(0, 0.3, 1000)), 0.5)
    assert alike.high / alike.low < 1.5


def test_a_course_keeps_kinds_apart_and_draws_its_blocks_anew():
    steps = list(range(100))
    course = Course(steps, [step % 2 == 1 for step in steps])
    random = np.random.default_rng(0)
    seen = []
    for _ in range(20):
        course.renew(random)
        drawn = [course.next(random, at_once=bool(number % 2)) for number in range(100)]
        assert [step % 2 for step in drawn] == [number % 2 for number in range(100)]
        seen.append(len(set(drawn)))
    assert max(seen) < 100
    lone = Course(steps, [False] * 100)
    lone.renew(random)
    assert lone.next(random, at_once=True) in steps
