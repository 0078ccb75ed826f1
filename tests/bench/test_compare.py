"""`compare`: real effects on an injected clock, and a few on the real one."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch
from representative import every
from torch import nn

import pyrometer as pm
from pyrometer.bench.comparison.verdict import sentence
from pyrometer.errors import InputError, UserProgramError


def noisy(step_s, seed=0, spread=0.03):
    rng = np.random.default_rng(seed)
    return lambda _i: step_s * math.exp(spread * abs(rng.normal()))


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [(1.0, "same"), (1.10, "slower"), (1.05, "slower"), (0.9, "faster"), (2.0, "slower")],
)
@pytest.mark.parametrize("step_s", every(2, [50e-6, 1e-3, 30e-3]))
def test_the_verdict_is_the_truth(clock, timed, ratio, outcome, step_s):
    v = pm.compare(timed(noisy(step_s)), timed(noisy(step_s * ratio, 1)), clock=clock, budget_s=60)
    assert v.outcome == outcome
    assert v.ci_low <= ratio <= v.ci_high
    assert v.num_blocks in {20, 40, 80, 160}


def test_short_calls_are_compared_by_the_fastest_of_a_batch_and_long_ones_by_cpu_time(clock, timed):
    short = pm.compare(timed(noisy(1e-4)), timed(noisy(1e-4, 1)), clock=clock, budget_s=60)
    assert (short.metric, short.calls_per_batch) == ("wall_min", 10)
    long = pm.compare(timed(noisy(1e-2)), timed(noisy(1e-2, 1)), clock=clock, budget_s=60)
    assert (long.metric, long.calls_per_batch) == ("cpu", 1)


@pytest.mark.measuring
def test_a_program_that_waits_is_compared_by_wall_time():
    v = pm.compare(
        pm.Call(lambda: time.sleep(0.004), name="A"), pm.Call(lambda: time.sleep(0.008), name="B"), budget_s=5
    )
    assert v.metric == "wall_min"
    assert v.outcome == "slower"
    assert 1.5 < v.ratio < 2.2


def crowded(cpu_s, seed, share=2.0):
    """Threads that wait for each other on a crowded machine, uncounted: wall time spreads, CPU time hardly does."""
    rng = np.random.default_rng(seed)

    def duration(_i):
        cpu = cpu_s * math.exp(0.03 * abs(rng.normal()))
        return cpu / share * math.exp(0.6 * abs(rng.normal())), cpu

    return duration


@pytest.mark.parametrize(("ratio", "outcome"), [(1.0, "same"), (1.10, "slower")])
@pytest.mark.parametrize("seed", range(6))
def test_threads_that_wait_for_a_crowded_processor_are_compared_by_cpu_time(
    clock, timed, ratio, outcome, seed
):
    v = pm.compare(
        timed(crowded(0.02, seed)), timed(crowded(0.02 * ratio, 100 + seed)), clock=clock, budget_s=20
    )
    assert v.metric == "cpu"
    assert v.outcome == outcome


def test_more_threads_on_a_crowded_machine_are_compared_by_wall_time(clock, timed):
    v = pm.compare(timed(crowded(0.04, 1, 1.0)), timed(crowded(0.04, 2, 4.0)), clock=clock, budget_s=20)
    assert (v.metric, v.outcome) == ("wall_min", "faster")


def queueing(cpu_s, seed, crowd=5.0):
    """One thread among others: it runs for a fifth of the time, and how long it queued is counted a little late."""
    rng = np.random.default_rng(seed)

    def duration(_i):
        cpu = cpu_s * math.exp(0.04 * rng.normal())
        wall = cpu * crowd * math.exp(0.3 * rng.normal())
        return wall, cpu, max(wall * rng.uniform(0.9, 1.1) - cpu, 0.0)

    return duration


@pytest.mark.parametrize(("ratio", "right"), [(1.0, "same"), (1.05, "slower"), (0.9, "faster")])
def test_long_steps_that_queue_for_a_processor_are_decided_by_cpu_time(clock, timed, ratio, right):
    outcomes = []
    for seed in range(8):
        a, b = timed(queueing(0.02, seed)), timed(queueing(0.02 * ratio, 100 + seed))
        v = pm.compare(a, b, clock=clock, budget_s=20, seed=seed)
        assert v.metric == "cpu"
        outcomes.append(v.outcome)
    assert outcomes.count(right) >= 6
    assert set(outcomes) <= {right, "undecided"}


def test_a_difference_that_is_certain_but_not_how_large_has_a_caveat_with_the_command_that_narrows_it(
    clock, timed
):
    a, b = timed(noisy(0.05, spread=0.9)), timed(noisy(0.2, 1, spread=0.9))
    v = pm.compare(a, b, clock=clock, budget_s=20)
    assert v.outcome == "slower"
    assert v.ci_high / v.ci_low > 1.25
    (wide,) = [caveat for caveat in v.caveats if caveat.code == "wide_interval"]
    assert "--thorough --budget 80s" in wide.advice.title


def test_a_drifting_machine_does_not_fool_it(clock, timed):
    """Speed halves while the comparison runs; both sides see it."""
    calls = iter(range(10**9))
    drift = lambda step_s: lambda _i: step_s * (1 + next(calls) / 500)  # noqa: E731
    v = pm.compare(timed(drift(1e-2)), timed(drift(1e-2)), clock=clock, budget_s=60)
    assert v.outcome == "same"


def test_the_same_seed_gives_the_same_order_and_another_seed_another(clock, timed):
    def order(seed):
        seen = []
        a = timed(noisy(0.01), lambda _: seen.append("a"))
        b = timed(noisy(0.01, 1), lambda _: seen.append("b"))
        pm.compare(a, b, clock=clock, budget_s=60, seed=seed)
        return seen

    first, again, other = order(1), order(1), order(2)
    assert first == again
    assert first != other
    assert first.count("a") == first.count("b")


def test_too_little_time_is_undecided_and_says_how_much_is_missing(clock, timed):
    v = pm.compare(timed(noisy(0.1, spread=0.3)), timed(noisy(0.104, 1, spread=0.3)), clock=clock, budget_s=3)
    assert v.outcome == "undecided"
    assert v.needed_s > 0
    assert sentence(v).startswith("undecided: about ")


def test_a_step_longer_than_the_budget_is_undecided_after_two_calls(clock, timed):
    v = pm.compare(timed(lambda _: 40.0), timed(lambda _: 44.0), clock=clock, budget_s=20)
    assert v.outcome == "undecided"
    assert clock.now_ns == 84e9
    assert v.ci_low is None
    assert "--budget" in v.reason


def test_ctrl_c_gives_the_verdict_so_far(clock, timed):
    def interrupts(i):
        if i == 60:
            raise KeyboardInterrupt

    v = pm.compare(
        timed(noisy(0.01), interrupts), timed(noisy(0.0101, 1)), clock=clock, budget_s=600, margin=0.001
    )
    assert v.outcome == "undecided"
    assert v.reason.startswith("interrupted after ")
    assert v.interrupted


def test_a_side_that_fails_is_named(clock, timed):
    def fails(i):
        if i == 16:
            raise ValueError("bad batch")

    with pytest.raises(UserProgramError, match="B: timed: step 17 raised ValueError: bad batch"):
        pm.compare(timed(noisy(0.01)), timed(noisy(0.01), fails), clock=clock, budget_s=60)


def test_many_candidates_share_the_error_probability(clock, timed):
    base = timed(noisy(0.001), name="base")
    candidates = [timed(noisy(0.001 * r, i), name=f"c{i}") for i, r in enumerate((1.0, 1.1, 0.8), start=1)]
    verdicts = pm.compare_many(base, candidates, clock=clock, budget_s=60)
    assert [v.outcome for v in verdicts] == ["same", "slower", "faster"]
    assert [v.candidate for v in verdicts] == ["c1", "c2", "c3"]
    alone = pm.compare(base, candidates[0], clock=clock, budget_s=60)
    assert (verdicts[0].ci_high - verdicts[0].ci_low) > 0.9 * (alone.ci_high - alone.ci_low)


def test_a_slower_tail_behind_the_same_typical_step_is_told(clock, timed):
    rng = np.random.default_rng(3)
    heavy = lambda _i: 1e-4 * (3 if rng.random() < 0.12 else 1)  # noqa: E731
    v = pm.compare(timed(lambda _i: 1e-4), timed(heavy), clock=clock, budget_s=60)
    assert v.outcome == "same"
    assert [c.code for c in v.caveats] == ["tail_slower"]


@pytest.mark.parametrize("arguments", [{"budget_s": 0}, {"margin": 0}, {"confidence": 2}])
def test_nonsense_is_refused(clock, timed, arguments):
    with pytest.raises(InputError):
        pm.compare(timed(noisy(0.01)), timed(noisy(0.01)), clock=clock, **arguments)


@pytest.mark.measuring
def test_real_models_with_a_real_difference():
    small, large = nn.Linear(64, 64), nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
    x = torch.randn(16, 64)
    v = pm.compare(pm.Inference(small, x), pm.Inference(large, x), budget_s=5)
    assert v.outcome == "slower"
    assert v.ratio > 1.5


@pytest.mark.measuring
@pytest.mark.slow
def test_identical_real_models_are_never_told_apart():
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), torch.randn(16, 64)
    outcomes = [
        pm.compare(pm.Inference(model, x), pm.Inference(model, x), budget_s=5, seed=seed).outcome
        for seed in range(16)
    ]
    assert sum(o in {"faster", "slower"} for o in outcomes) <= 1
    assert outcomes.count("same") >= 12


def test_sides_that_disturb_each_other_are_not_decided(clock, timed):
    """B is slow only right after A, as when both share a power limit; alone it is the faster one."""
    clock.name = "device events"
    last = []

    def side(name, alone_s, after_other_s):
        def duration(_i):
            other = bool(last) and last[-1] != name
            last.append(name)
            return after_other_s if other else alone_s

        return timed(duration, name=name)

    v = pm.compare(side("a", 0.010, 0.010), side("b", 0.008, 0.014), clock=clock, budget_s=60)
    assert v.metric == "device"
    assert v.ratio > 1
    assert v.isolated_ratio == pytest.approx(0.8, rel=0.05)
    assert v.outcome == "undecided"
    assert "disturb" in v.reason
    assert [caveat.code for caveat in v.caveats] == ["sides_disturb"]


def test_long_steps_run_in_pairs_and_the_steady_part_of_their_warm_up_counts(clock, timed):
    step_s = 0.03
    verdict = pm.compare(timed(lambda _: step_s), timed(lambda _: step_s), budget_s=20, clock=clock)
    assert (verdict.outcome, verdict.num_blocks) == ("same", 20)
    assert verdict.blocks_s == pytest.approx(2 * 20 * step_s)
    # Ten calls of each side warmed up; eight of them are among the twenty.
    assert verdict.elapsed_s < verdict.blocks_s + 10 * step_s


@pytest.mark.parametrize("slow_rounds", [0, 5])
def test_the_slow_start_of_a_warm_up_is_no_block(clock, timed, slow_rounds):
    """Whichever side is slow at the start, nothing of it reaches the verdict."""
    cold = timed(lambda i: 0.09 if 0 < i <= slow_rounds else 0.03)
    verdict = pm.compare(timed(lambda _: 0.03), cold, budget_s=20, clock=clock)
    assert verdict.log_ratios == pytest.approx([0.0] * verdict.num_blocks)
