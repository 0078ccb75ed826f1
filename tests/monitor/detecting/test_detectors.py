"""Every detector is quiet on stationary noise and speaks on what it is for; alarms persist and end with hysteresis."""

from __future__ import annotations

import numpy as np
import pytest

from pyrometer.errors import InputError
from pyrometer.monitor.detecting import catalogue
from pyrometer.monitor.detecting.alarm import Alarm, State
from pyrometer.monitor.detecting.baseline import Season
from pyrometer.monitor.detecting.cusum import Cusum
from pyrometer.monitor.detecting.detector import Reading, make_detector, registered
from pyrometer.monitor.detecting.error_rate import ErrorRate
from pyrometer.monitor.detecting.listener import Detection
from pyrometer.monitor.detecting.output_shift import OutputShift
from pyrometer.monitor.detecting.tail import Tail
from pyrometer.monitor.detecting.watch import Guard, Watch, latency_guards
from pyrometer.monitor.tick import Calls, Tick


def latencies(rng, n, sigma=0.3):
    return 0.01 * np.exp(rng.normal(0, sigma, n)) + (rng.random(n) < 0.003) * rng.exponential(0.05, n)


def alarms(watch, stream, block=100):
    return [
        (start + noticed.after, noticed.detector)
        for start in range(0, len(stream), block)
        for noticed in watch.observe(start / 1000, stream[start : start + block])
        if noticed.change.firing
    ]


def scores(detector, values, at_s=None):
    times = range(len(values)) if at_s is None else at_s
    return [r.score for t, v in zip(times, values, strict=True) for r in detector.observe(t, np.array([v]))]


def test_the_default_set_is_quiet_on_heavy_tails_and_finds_a_fifth_within_250_requests():
    false, delays = 0, []
    for seed in range(8):
        rng = np.random.default_rng(9000 + seed)
        stream = latencies(rng, 30_000)
        false += len(alarms(Watch("latency", latency_guards()), stream))
        stream[10_000:] *= 1.2
        delays.append(
            next(
                (
                    at - 10_000
                    for at, _ in alarms(Watch("latency", latency_guards()), stream[:12_000])
                    if at > 10_000
                ),
                9999,
            )
        )
    assert false <= 2  # of 240,000 requests
    assert np.median(delays) <= 250


def test_blocks_may_arrive_in_any_portions():
    stream = latencies(np.random.default_rng(1), 8000)
    stream[6000:] *= 1.5
    whole = alarms(Watch("x", latency_guards()), stream, block=8000)
    assert whole == alarms(Watch("x", latency_guards()), stream, block=1)


def test_a_tail_is_found_while_the_median_stays():
    rng = np.random.default_rng(2)
    stream = latencies(rng, 20_000)
    stream[12_000:][rng.random(8000) < 0.06] += 0.1
    found = alarms(Watch("x", [Guard("tail", Tail(), Alarm(persistence=2))]), stream)
    assert found
    assert 12_000 < found[0][0] < 13_500


def test_the_season_of_a_day_is_no_shift_and_a_shift_in_it_is_found():
    rng = np.random.default_rng(3)
    times = np.arange(0, 6 * 86400, 120.0)
    load = 0.01 * (1 + 0.4 * np.sin(times * 2 * np.pi / 86400)) * np.exp(rng.normal(0, 0.05, len(times)))
    season = Season(86400, 24)
    cusum = Cusum(block=1, warm_up=720, season=season)
    quiet = [r.score for t, v in zip(times, load, strict=True) for r in cusum.observe(t, np.array([v]))]
    assert max(quiet) < 1
    shifted = [
        r.score
        for i in range(60)
        for r in cusum.observe(
            times[-1] + 120 * (i + 1),
            np.array([1.4 * 0.01 * (1 + 0.4 * np.sin((times[-1] + 120 * (i + 1)) * 2 * np.pi / 86400))]),
        )
    ]
    assert max(shifted) >= 1


@pytest.mark.parametrize("name", ["sigma", "robust-z", "ewma"])
def test_spikes_of_a_gauge(name):
    rng = np.random.default_rng(4)
    quiet = rng.normal(100, 2, 400)
    assert max(scores(make_detector(name), quiet)) < 1.0
    assert scores(make_detector(name), [*quiet, 140.0])[-1] >= 1


def test_page_hinkley_finds_a_drift():
    rng = np.random.default_rng(5)
    quiet = rng.normal(50, 1, 600)
    assert max(scores(make_detector("page-hinkley"), quiet)) < 1
    drifting = [*quiet, *(rng.normal(50, 1, 200) + np.linspace(0, 6, 200))]
    assert scores(make_detector("page-hinkley"), drifting)[-1] >= 1


def test_errors_are_found_within_hundreds_of_requests_and_a_normal_rate_is_not():
    rng = np.random.default_rng(6)
    detector = ErrorRate(normal=0.002)
    quiet = [detector.count(t, 1000, int(rng.binomial(1000, 0.002))).score for t in range(2000)]
    assert max(quiet) < 1
    worse = [detector.count(t, 100, int(rng.binomial(100, 0.05))).score for t in range(20)]
    assert max(worse[:8]) >= 1
    after = [detector.count(t, 1000, 0).score for t in range(60)]
    assert after[-1] < 0.5  # it can end


def test_absence_knows_the_usual_gap():
    detector = make_detector("absence", least_s=5.0)
    for second in range(100):
        readings = list(detector.observe(float(second), np.ones(3)))
    assert readings[0].score < 1
    assert [next(iter(detector.observe(100.0 + s, np.empty(0)))).score >= 1 for s in (2, 8)] == [False, True]


def test_a_leak_is_proved_and_a_sawtooth_is_none():
    rng = np.random.default_rng(7)
    times = np.arange(0, 7200, 10.0)
    flat = 1e9 + rng.normal(0, 2e6, len(times)) + 5e7 * (np.arange(len(times)) % 30) / 30
    leaking = flat + times / 3600 * 3e8
    worst = [
        max(scores(make_detector("leak", most_per_hour=64e6), values, times)) for values in (flat, leaking)
    ]
    assert worst[0] < 1 <= worst[1]


@pytest.mark.parametrize("distance", ["psi", "ks", "wasserstein"])
def test_outputs_that_shift(distance):
    rng = np.random.default_rng(8)
    reference = rng.normal(0, 1, 5000)
    same = OutputShift(reference, distance, window=300)
    assert all(r.score < 1 for _ in range(100) for r in same.observe(0.0, rng.normal(0, 1, 300)))
    assert next(iter(same.observe(0.0, rng.normal(0.6, 1.3, 300)))).score >= 1


def test_the_limit_counts_nan_and_says_at_which_request():
    detector = make_detector("limit", most=0.05)
    reading = next(iter(detector.observe(0.0, np.array([0.01, np.nan, 0.02]))))
    assert reading.score >= 1
    assert reading.after == 2
    assert next(iter(detector.observe(0.0, np.array([0.05])))).score < 1


def test_adwin_of_river():
    pytest.importorskip("river")
    rng = np.random.default_rng(9)
    detector = make_detector("adwin")
    assert max(r.score for r in detector.observe(0.0, latencies(rng, 4000))) < 1
    assert max(r.score for r in detector.observe(0.0, 1.5 * latencies(rng, 1000))) >= 1


def reading(score):
    return Reading(at_s=score, after=1, score=score, value=score, evidence="")


def test_an_alarm_persists_and_ends_with_hysteresis():
    alarm = Alarm(persistence=2, clear=0.5, recovery=2)
    told = [alarm.take(reading(score)) for score in (1.2, 0.9, 1.2, 1.2, 0.8, 0.4, 0.8, 0.4, 0.4)]
    assert [None if change is None else change.firing for change in told] == [
        None, None, None, True, None, None, None, None, False,
    ]  # fmt: skip
    assert alarm.state is State.QUIET


def test_what_is_flagged_is_not_learned():
    rng = np.random.default_rng(10)
    stream = np.concatenate([latencies(rng, 10_000), 1.5 * latencies(rng, 60_000)])
    cusum = Cusum()
    last = list(cusum.observe(0.0, stream))[-1]
    assert last.score >= 1
    assert last.expected < 0.0125


def test_bad_settings_and_names_are_told_in_one_line():
    for act in (
        lambda: make_detector("cusumm"),
        lambda: make_detector("cusum", blok=3),
        lambda: make_detector("limit", most=-1),
        lambda: make_detector("error-rate", normal=2),
        lambda: make_detector("output-shift", distance="cosine"),
        lambda: Alarm(persistence=0),
    ):
        with pytest.raises(InputError, match="legal") as raised:
            act()
        assert "\n" not in str(raised.value)
    assert "cusum" in catalogue.names()


def test_two_detectors_of_one_name_are_refused():
    with pytest.raises(ValueError, match="cusum"):
        registered("cusum")(Cusum)


def test_a_detector_that_fails_takes_no_other_with_it():
    class Broken:
        def observe(self, _at_s, _values):
            raise RuntimeError("odd")

    watch = Watch(
        "x", [Guard("broken", Broken(), Alarm()), Guard("limit", make_detector("limit", most=1.0), Alarm())]
    )
    assert [n.detector for n in watch.observe(0.0, np.array([2.0]))] == ["limit"]
    assert watch.failed == {"broken": "RuntimeError: odd"}


def test_the_listener_tells_of_latency_errors_and_silence():
    told = []
    detection = Detection(limit_s=0.5, told=[told.append])
    rng = np.random.default_rng(11)
    for second in range(80):
        detection.samples("infer", float(second), list(latencies(rng, 100)))
        assert not detection.tick(Tick(at_s=float(second), calls={"infer": Calls(num_ended=100)}))
    detection.samples("infer", 80.0, [0.9])
    detection.tick(Tick(at_s=80.0, calls={"infer": Calls(num_ended=50, num_failed=50)}))
    assert {notice.name for notice in told} == {"infer.latency/limit", "infer.errors/error-rate"}
    assert set(detection.alarms()) == {"infer.latency/limit", "infer.errors/error-rate"}
    for second in range(81, 100):
        events = detection.tick(Tick(at_s=float(second), calls={"infer": Calls()}))
        if events:
            break
    assert events[0].event == "alarm"
    assert events[0].fields["alarm"] == "infer.requests/absence"
