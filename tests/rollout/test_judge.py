"""The judge: worse, safe or neither, from counts alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollouts import counts, make_plan

from pyrometer.errors import InputError
from pyrometer.histogram import Histogram
from pyrometer.rollout.counts import LATENCY, Counts, add_counts, bucket_end, level_of
from pyrometer.rollout.judging.judge import judge
from pyrometer.rollout.judging.level import difference
from pyrometer.rollout.judging.margins import stage_margin
from pyrometer.rollout.observed import NEW, OLD, Epoch, Observed, Reported, observed
from pyrometer.rollout.plan import Metric, default_metrics


def drawn(rng, num, *, slower=1.0, error_rate=0.002, spread=0.35, load=0.0):
    latency = 0.010 * slower * np.exp(rng.normal(load, spread, num))
    failed = int(rng.binomial(num, error_rate))
    return Counts(num=num, events={"errors": failed}, values={LATENCY: Histogram.of(latency).counts})


def judged(*epochs, next_share=0.5, **fields):
    seen = Observed(epochs=[Epoch(share=w, new=new, old=old) for w, new, old in epochs])
    return judge(make_plan(**fields), seen, next_share=next_share)


@given(st.integers(0, 99), st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_no_data_and_little_data_prove_nothing(new, old, next_share):
    found = judged((0.01, counts(new), counts(old)), next_share=next_share)
    assert found.outcome in {"undecided", "mismatch"}


def test_a_version_like_the_old_one_is_safe_after_enough():
    rng = np.random.default_rng(1)
    found = judged((0.5, drawn(rng, 60_000), drawn(rng, 60_000)))
    assert found.outcome == "safe"
    assert [test.outcome for test in found.tests] == ["safe", "safe"]
    assert all(test.ci_low < 1 < test.ci_high < test.margin for test in found.tests)


@pytest.mark.parametrize(
    ("worse", "metric"), [({"slower": 1.1}, "latency"), ({"error_rate": 0.006}, "errors")]
)
def test_harm_is_told_with_its_metric_and_figures(worse, metric):
    rng = np.random.default_rng(2)
    found = judged((0.2, drawn(rng, 10_000, **worse), drawn(rng, 40_000)))
    assert found.outcome == "worse"
    assert found.reason.startswith(f"{metric}: ")
    (test,) = [test for test in found.tests if test.outcome == "worse"]
    assert test.metric == metric
    assert test.e_value >= test.needed == 40
    assert test.ci_low > 1


def test_what_is_tolerated_is_no_harm():
    rng = np.random.default_rng(2)
    epoch = (0.2, drawn(rng, 10_000, slower=1.1), drawn(rng, 40_000))
    found = judged(epoch, metrics=default_metrics(tolerate=1.15))
    assert [test.outcome for test in found.tests if test.metric == LATENCY] == ["safe"]


def test_a_load_that_changes_with_the_share_is_no_difference():
    # Early hours are quick and see little of the new version; later ones are slow and see much of it.
    rng = np.random.default_rng(3)
    epochs = [
        (w, drawn(rng, int(w * 20_000), load=load), drawn(rng, int((1 - w) * 20_000), load=load))
        for w, load in ((0.05, 0.0), (0.5, 1.0))
    ]
    pooled = [
        level_of(add_counts(side).buckets(LATENCY)).mean
        for side in zip(*[one[1:] for one in epochs], strict=True)
    ]
    assert pooled[0] - pooled[1] > 0.3
    found = difference(
        [(level_of(new.buckets(LATENCY)), level_of(old.buckets(LATENCY))) for _, new, old in epochs]
    )
    assert abs(found.mean) < 4 * found.error < 0.03
    assert judged(*epochs).outcome != "worse"


def test_margins_are_wider_where_little_traffic_is_at_stake():
    metric = Metric(name="m", kind="events", margin=1.5)
    assert [stage_margin(metric, share) for share in (0.05, 0.25, 0.5, 1.0)] == [6.0, 2.0, 1.5, 1.5]


def test_rare_errors_need_no_ratio():
    found = judged((0.5, counts(8000), counts(8000)))
    assert [test.outcome for test in found.tests if test.metric == "errors"] == ["safe"]
    few = judged((0.5, counts(500), counts(500)))
    assert [test.outcome for test in few.tests if test.metric == "errors"] == ["undecided"]


def test_what_is_worse_when_rarer_is_tested_the_other_way_round():
    metrics = [Metric(name="detections", kind="events", worse="less", margin=1.3)]
    half, same = (
        judged((0.5, counts(2000, detections=new), counts(2000, detections=1000)), metrics=metrics)
        for new in (800, 1010)
    )
    assert (half.outcome, same.outcome) == ("worse", "safe")
    (test,) = half.tests
    assert test.ci_low < test.estimate < test.ci_high < 1
    assert test.estimate == pytest.approx(0.8)


def test_quantities_of_the_user_are_tested_as_latency_is():
    metrics = [Metric(name="score", kind="values", worse="less", margin=1.1)]
    rng = np.random.default_rng(4)
    old, new = (
        Counts(num=3000, values={"score": Histogram.of(np.exp(rng.normal(mean, 0.2, 3000))).counts})
        for mean in (0, -0.2)
    )
    found = judged((0.5, new, old), metrics=metrics)
    assert found.outcome == "worse"
    assert found.tests[0].estimate == pytest.approx(0.82, abs=0.02)


def test_outputs_of_a_shadow_may_differ_in_a_fixed_share():
    metrics = [Metric(name="disagreed", kind="agreement", margin=2.0, limit=0.01)]
    for differ, outcome in ((2, "safe"), (12, "undecided"), (60, "worse")):
        new = Counts(num=1200, events={"compared": 1200, "disagreed": differ})
        assert judged((0.2, new, counts(4800)), metrics=metrics).outcome == outcome


def test_wrong_shares_make_every_test_void():
    rng = np.random.default_rng(5)
    found = judged((0.2, drawn(rng, 15_000, slower=1.5), drawn(rng, 40_000)))
    assert found.outcome == "mismatch"
    assert found.mismatch_e_value > 1000


@pytest.mark.parametrize(
    ("new", "guard"),
    [
        (counts(30, not_finite=1), "not-finite"),
        (counts(30, out_of_memory=1), "out-of-memory"),
        (Counts(num=30, most_failed_in_row=3), "exceptions-in-row"),
        (Counts(num=300, values={LATENCY: {-200: 250, -100: 50}}), "p99"),
    ],
)
def test_guards_need_no_statistics(new, guard):
    found = judged((0.05, new, counts(6000)))
    assert found.outcome == "worse"
    assert [one.guard for one in found.guards] == [guard]
    assert found.reason == found.guards[0].said


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (counts(30, not_finite=1), counts(6000, not_finite=20)),
        (Counts(num=30, most_failed_in_row=5), Counts(num=600, most_failed_in_row=9)),
        (Counts(num=150, values={LATENCY: {-200: 100, -100: 50}}), counts(6000)),
        (Counts(num=200, values={LATENCY: {-200: 197, -100: 3}}), counts(6000)),
    ],
)
def test_what_the_old_version_does_as_well_or_chance_may_do_breaks_no_guard(new, old):
    assert judged((0.05, new, old)).guards == []


def replica_reports(rng, *, calm=80, later=80, replicas=3, slower=1.0, rho=0.9):
    reports = []
    for replica in range(2 * replicas):
        level, offset = 0.0, rng.normal(0, 0.1)
        for block in range(calm + later):
            level = rho**20 * level + rng.normal(0, 0.05)
            arm = OLD if replica < replicas else NEW
            harm = slower if arm == NEW and block >= calm else 1.0
            one = drawn(rng, 300, slower=harm, load=level + offset)
            reports.append(
                Reported(epoch=int(block >= calm), arm=arm, reporter=f"r{replica}", block=block, counts=one)
            )
    return reports


def of_replicas(reports, **fields):
    plan = make_plan(assignment="replicas", metrics=[default_metrics()[1]], **fields)
    return judge(plan, observed([0.01, 0.01], reports, keep_reports=True), next_share=0.5)


def test_replicas_without_a_calm_period_or_enough_of_them_are_not_proved():
    rng = np.random.default_rng(6)
    early, few = replica_reports(rng, calm=39), replica_reports(rng, replicas=2)
    assert of_replicas(early).outcome == of_replicas(few).outcome == "not proved"
    assert "39 of 40 blocks" in of_replicas(early).reason
    assert "3 of each version" in of_replicas(few).reason


def test_replicas_that_say_nothing_for_long_are_not_proved_and_why_is_told():
    rng = np.random.default_rng(4)
    noisy = of_replicas(replica_reports(rng, calm=80, later=0, rho=0.9999), most_blocks=80)
    assert (noisy.outcome, noisy.is_final) == ("not proved", True)
    assert "80 blocks did not bring it" in noisy.reason
    close = of_replicas(replica_reports(rng, calm=79, later=80, slower=1.03), most_blocks=80)
    assert (close.outcome, close.is_final) == ("not proved", True)
    assert "harm to latency, after 80 blocks of 10 s: take more replicas" in close.reason
    assert close.tests[0].estimate == pytest.approx(1.03, abs=0.03)


def test_replicas_are_compared_with_themselves_while_calm():
    rng = np.random.default_rng(8)
    worse = [of_replicas(replica_reports(rng)).outcome == "worse" for _ in range(10)]
    assert not any(worse)  # though their offsets are 10 %
    found = of_replicas(replica_reports(rng, slower=1.25))
    assert found.outcome == "worse"
    assert found.tests[0].estimate == pytest.approx(1.25, abs=0.08)


def test_noise_that_lasts_longer_than_blocks_is_not_proved():
    rng = np.random.default_rng(9)
    assert of_replicas(replica_reports(rng, rho=0.9999)).outcome == "not proved"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"stages": [0.5, 0.2, 1.0]}, "rising shares"),
        ({"stages": [0.1, 0.5]}, "rising shares"),
        ({"new": "v1"}, "two different versions"),
        ({"alpha": 0.7}, "0.05"),
        ({"gates": [0.3]}, "some of the stages"),
        ({"metrics": []}, "one or more metrics"),
        ({"name": "a\nb"}, "printable"),
        ({"deadline_s": 1.0}, "more than min_s"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_in_one_line(fields, said):
    with pytest.raises(InputError, match=said) as caught:
        make_plan(**fields)
    assert "\n" not in str(caught.value)


def test_thresholds_end_buckets_so_that_counting_is_exact():
    limit = bucket_end(0.018)
    assert 0.018 <= limit < 0.018 * 1.03
    assert bucket_end(limit) == pytest.approx(limit)
