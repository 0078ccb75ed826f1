"""Chains, change points and proofs, on histories whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.guard.gate import Gate, GuardReport, Revision
from pyrometer.guard.history.changes import find_changes, spread_of, stretches
from pyrometer.guard.history.history import history_of, self_checks
from pyrometer.guard.history.proofs import requests
from pyrometer.guard.history.series import Recorded, all_series, chain

BENCHMARK = "perf_model.py::perf_forward"
SELF_CHECK = Verdict(
    outcome="same", ratio=1.0, ci_low=0.99, ci_high=1.01, confidence=0.99, margin=0.05, smallest_effect=0.02, num_blocks=5,
    elapsed_s=1.0,
)  # fmt: skip


def gate(truth: float, *, seed: int = 0, pairs: int = 5, sd: float = 0.005, **fields) -> Gate:
    """Of a time; its pairs scatter around the truth, which is their mean."""
    noise = np.random.default_rng(seed).normal(0, sd, pairs)
    values = [float(value) for value in truth + noise - noise.mean()]
    plain = {"metric": "median_s", "kind": "time", "outcome": "unchanged", "ratio": math.exp(truth)}
    return Gate(**{"benchmark": BENCHMARK, "log_ratios": values, "head": 1.0, **plain, **fields})


def job(base: int, head: int, *gates: Gate, trusted: bool = True, checked: bool = True, **fields) -> Recorded:
    report = GuardReport(
        **fields,
        trusted=trusted,
        self_check=SELF_CHECK if checked else None,
        gates=list(gates),
        base=Revision(ref="", sha=f"c{base}"),
        head=Revision(ref="", sha=f"c{head}"),
    )
    return Recorded(f"run{base}-{head}", "2026-01-01T00:00:00.000000Z", report)


def history(steps) -> list[Recorded]:
    return [job(place, place + 1, gate(step, seed=place)) for place, step in enumerate(steps)]


logs = st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=30)


def test_a_renamed_benchmark_goes_on_under_its_new_name():
    renamed = {"perf_net.py::perf_new": BENCHMARK}
    jobs = [
        job(0, 1, gate(0.1)),
        job(1, 2, gate(0.2, benchmark="perf_net.py::perf_new"), renamed=renamed),
        job(2, 3, gate(0.3, benchmark="perf_net.py::perf_new")),
    ]
    (series,) = all_series(chain(jobs))
    assert series.benchmark == "perf_net.py::perf_new"
    assert [point.log_ratio for point in series.points] == pytest.approx([0.1, 0.2, 0.3])


@given(logs)
def test_chained_ratios_multiply_to_that_of_the_ends(steps):
    (series,) = all_series(chain(history(steps)))
    assert series.points[-1].chained == pytest.approx(math.exp(math.fsum(steps)))
    widths = [math.log(point.ci_high / point.ci_low) for point in series.points]
    assert widths == sorted(widths)
    assert all(point.ci_low < point.chained < point.ci_high for point in series.points)


@given(logs, st.randoms())
def test_a_chain_does_not_depend_on_what_lies_beside_it(steps, order):
    jobs = history(steps)
    beside = [job(100 + place, 200 + place, gate(9.0)) for place in range(3)]
    untrusted = [job(place, 300 + place, gate(9.0), trusted=False) for place in range(len(steps))]
    mixed = [*beside, *jobs[:-1]]
    order.shuffle(mixed)
    assert chain([*mixed, *untrusted, jobs[-1]]) == jobs


def test_the_newest_job_of_a_commit_counts_and_a_circle_ends():
    jobs = [job(0, 1, gate(0.5)), job(1, 2, gate(0)), job(0, 1, gate(0.0)), job(1, 2, gate(0.1))]
    assert chain(jobs) == jobs[2:]
    assert len(chain([job(0, 1, gate(0)), job(1, 0, gate(0))])) == 2
    assert chain([]) == []


def test_a_commit_without_a_benchmark_ends_its_series():
    other = gate(0.1, benchmark="other")
    jobs = [job(0, 1, gate(0.1)), job(1, 2, other), job(2, 3, gate(0.2), other)]
    lengths = {series.benchmark: len(series.points) for series in all_series(jobs)}
    assert lengths == {BENCHMARK: 1, "other": 2}


@given(st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=60))
def test_what_scatters_within_its_errors_is_no_change(scores):
    found = stretches(np.array(scores), 4.0)
    assert all(abs(sum(scores[begin:end])) >= 4.0 * math.sqrt(end - begin) for begin, end in found)
    assert [end for _, end in found] == sorted(end for _, end in found)


@given(st.integers(0, 29), st.sampled_from([-0.1, -0.05, 0.05, 0.1]))
def test_a_jump_is_found_at_its_commit_in_its_direction(place, jump):
    steps = [0.001 * (-1) ** n for n in range(30)]
    steps[place] = jump
    (series,) = all_series(history(steps))
    (change,) = find_changes(series)
    assert (change.base_sha, change.head_sha) == (f"c{place}", f"c{place + 1}")
    assert change.is_worse == (jump > 0)
    assert change.ci_low < math.exp(jump) < change.ci_high


def test_a_creeping_change_is_one_stretch():
    steps = [0.0] * 15 + [0.004] * 25 + [0.0] * 15
    (series,) = all_series(history(steps))
    (change,) = find_changes(series)
    assert change.num_links > 15
    assert change.ratio > 1.06


def test_more_throughput_is_better_and_small_changes_are_none():
    jobs = [
        job(place, place + 1, gate(0.1 if place == 3 else 0.0, metric="throughput")) for place in range(9)
    ]
    (series,) = all_series(jobs)
    assert [change.is_worse for change in find_changes(series)] == [False]
    (series,) = all_series(history([0.0] * 9 + [0.015]))
    assert find_changes(series) == []


def test_counters_change_exactly_and_need_no_proof():
    def counted(ratio):
        return gate(0, metric="operators", kind="counter", log_ratios=[], ratio=ratio)

    jobs = [job(place, place + 1, counted(1.01 if place == 2 else 1.0)) for place in range(5)]
    (change,) = history_of(jobs).changes
    assert change.state == "proved"
    assert change.point.is_exact
    assert change.point.head_sha == "c3"
    assert history_of(jobs).to_prove == []


def test_links_that_scatter_more_than_they_say_are_told_by_their_median():
    scores = np.random.default_rng(3).normal(0, 3, 200)
    assert spread_of(scores) == pytest.approx(3, rel=0.25)
    assert spread_of(scores / 9) == 1


@pytest.mark.parametrize(
    ("outcome", "fields", "state"),
    [
        ("regressed", {}, "proved"),
        ("unchanged", {"warning": "worse by 3 %, within the limit of 5 %"}, "proved"),
        ("unchanged", {}, "refuted"),
        ("improved", {}, "refuted"),
        ("undecided", {}, "to prove"),
    ],
)
def test_a_change_is_proved_by_a_job_of_its_two_ends(outcome, fields, state):
    jobs = history([0.0] * 10 + [0.1] + [0.0] * 3)
    proof = job(10, 11, gate(0.1, outcome=outcome, **fields))
    (change,) = history_of(jobs, [proof]).changes
    assert change.state == state
    assert history_of(jobs).changes[0].state == "to prove"
    untrusted = job(10, 11, gate(0.1, outcome="regressed"), trusted=False)
    assert history_of(jobs, [untrusted]).changes[0].state == "to prove"
    twice = history_of(jobs, [job(10, 11, gate(0.1, outcome="undecided")) for _ in range(2)])
    assert twice.changes[0].state == "undecided"
    assert twice.to_prove == []


def test_a_commit_is_named_only_when_it_is_alone_and_proved():
    jobs = history([0.0] * 10 + [0.1])
    proof = [job(10, 11, gate(0.1, outcome="regressed"))]
    alone = history_of(jobs, proof, commits_between=lambda _base, head: [head])
    several = history_of(jobs, proof, commits_between=lambda _base, head: ["x", head])
    open_one = history_of(jobs, commits_between=lambda _base, head: [head])
    assert [one.changes[0].named for one in (alone, several, open_one)] == ["c11", None, None]
    assert len(alone.standing) == 1
    accepted = history_of(jobs, proof, accepted={"c11": "fp32 sums are needed"})
    assert accepted.standing == []
    assert accepted.changes[0].accepted == "fp32 sums are needed"


def test_one_job_proves_all_changes_of_the_same_ends():
    steps = [0.0] * 9 + [0.1]
    jobs = [
        job(place, place + 1, *(gate(step, benchmark=name, seed=place) for name in "ab"))
        for place, step in enumerate(steps)
    ]
    asked = requests(history_of(jobs).changes)
    assert [(one.base_sha, one.head_sha, one.benchmarks) for one in asked] == [("c9", "c10", ["a", "b"])]


def test_the_rate_of_self_checks_has_an_interval():
    jobs = [job(n, n + 1, gate(0), trusted=n != 7, checked=n != 8) for n in range(100)]
    checks = self_checks(jobs)
    assert (checks.num_jobs, checks.num_alarms) == (99, 1)
    assert checks.rate == pytest.approx(1 / 99)
    assert checks.ci_low < 0.01 < checks.ci_high < 0.08
    assert self_checks([]).rate is None
    found = history_of(jobs)
    assert (found.num_untrusted, found.num_commits, found.num_outside) == (1, 92, 7)
