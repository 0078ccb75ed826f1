"""`measure`: what is timed, what is kept, when it stops, and what it says about itself."""

from __future__ import annotations

import time

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.clock import HostClock, timer_overhead
from pyrometer.bench.quality import Circumstances
from pyrometer.bench.reservations import CaveatFacts, caveats_of
from pyrometer.errors import InputError, UserProgramError

rng = np.random.default_rng(0)


def codes(measurement):
    return {caveat.code for caveat in measurement.warnings}


def noisy(step_s):
    return lambda i: step_s * (1 + 0.02 * rng.random())


def test_cold_warm_and_steady_are_kept_apart(clock, timed):
    durations = [1.0, 0.05, 0.04, 0.03, 0.02, 0.015]
    m = pm.measure(timed(lambda i: durations[i] if i < 6 else 0.01), clock=clock, budget_s=5)
    assert m.first_call_s == pytest.approx(1.0)
    assert m.warmup_steps == 6
    assert m.warmup_s == pytest.approx(durations)
    assert m.steady
    assert m.median_s == m.min_s == m.max_s == pytest.approx(0.01)
    assert m.throughput == pytest.approx(400)


def test_the_statistics_are_those_of_the_samples(clock, timed):
    m = pm.measure(timed(noisy(0.01)), clock=clock, budget_s=20)
    samples = np.array(m.samples_s)
    assert m.num_samples == len(samples)
    assert m.mean_s == pytest.approx(samples.mean())
    assert m.p95_s == pytest.approx(np.quantile(samples, 0.95))
    assert m.jitter == pytest.approx(np.quantile(samples, 0.99) / samples.mean())
    assert m.ci_low_s <= m.median_s <= m.ci_high_s
    assert m.throughput_low <= m.throughput <= m.throughput_high


def test_it_ends_when_the_budget_is_spent(clock, timed):
    m = pm.measure(timed(lambda i: 0.3 * (1 + rng.random())), clock=clock, budget_s=10)
    assert m.elapsed_s <= 11


def test_it_ends_early_when_the_median_is_known_precisely(clock, timed):
    m = pm.measure(timed(noisy(0.001)), clock=clock, budget_s=3600, phases=False)
    assert m.elapsed_s < 60
    assert (m.ci_high_s - m.ci_low_s) / 2 <= 0.005 * m.median_s


def test_a_step_longer_than_the_budget_gives_its_first_call(clock, timed):
    asked = Circumstances(command="pyrometer bench x.py:work", budget_s=5)
    m = pm.measure(timed(lambda _: 40.0), clock=clock, budget_s=5, circumstances=asked)
    assert clock.now_ns == 40e9, "no second step may begin"
    assert not m.complete
    assert m.median_s == m.first_call_s == 40.0
    assert codes(m) == {"first_call_only"} | (codes(m) & {"competing_load", "steal", "memory_grows"})
    assert "`pyrometer bench x.py:work --budget 400s`" in m.warnings[0].advice.title
    assert m.warnings[0].needed_s == 400
    compiled = caveats_of(msgspec.structs.replace(m, compile_s=39.9), CaveatFacts())[0]
    assert compiled.message == "the first call compiled for 39.9 s, longer than the budget; no step was timed"
    assert (compiled.advice.title, compiled.needed_s) == ("pass budget_s=48", 48)


def test_a_program_that_never_becomes_steady_is_reported_as_such(clock, timed):
    m = pm.measure(timed(lambda i: 1.0 / (i + 1) ** 0.7), clock=clock, budget_s=20, phases=False)
    assert not m.steady
    assert "not_steady" in codes(m)


def test_a_program_that_slows_down_is_drifting(clock, timed):
    m = pm.measure(timed(lambda i: 0.01 * (1 + i / 200)), clock=clock, budget_s=20, phases=False)
    assert not m.steady
    assert "drifting" in codes(m)


def test_a_failure_keeps_the_steps_before_it(clock, timed):
    def fails_at_37(i):
        if i == 36:
            raise ValueError("bad batch")

    m = pm.measure(timed(noisy(0.01), fails_at_37), clock=clock, budget_s=20)
    assert (
        m.failure == "step 37 raised ValueError: bad batch (tests/bench/test_measure.py:101)"
        or m.failure.startswith("step 37 raised ValueError: bad batch")
    )
    assert not m.complete
    assert m.num_samples + m.warmup_steps == 36
    assert m.warnings[0].code == "failed"


def test_a_failure_of_the_first_step_is_the_users(clock, timed):
    def fails(_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(UserProgramError, match="step 1 raised RuntimeError: mat1 and mat2"):
        pm.measure(timed(noisy(0.01), fails), clock=clock, budget_s=1)


def test_ctrl_c_keeps_what_was_measured(clock, timed):
    def interrupts(i):
        if i == 50:
            raise KeyboardInterrupt

    m = pm.measure(timed(noisy(0.01), interrupts), clock=clock, budget_s=20)
    assert m.interrupted
    assert not m.complete
    assert m.num_samples > 20
    assert "interrupted" in codes(m)


@pytest.mark.measuring
def test_tiny_steps_are_timed_in_batches():
    m = pm.measure(pm.Call(lambda: None), budget_s=0.3, phases=False)
    assert m.steps_per_sample > 1
    assert 0 < m.median_s < 5e-6
    assert "batched" in codes(m)


def test_steps_timed_one_by_one_before_batching_are_warm_up():
    m = pm.measure(pm.Call(lambda: None), budget_s=0.1, phases=False)
    assert m.warmup_steps >= 6
    assert len(m.warmup_s) >= 6


def test_a_program_that_exits_in_a_step_has_failed(clock, timed):
    def exits(i):
        if i == 9:
            raise SystemExit(5)

    m = pm.measure(timed(noisy(0.01), exits), clock=clock, budget_s=20)
    assert m.failure.startswith("step 10 raised SystemExit: 5")


@pytest.mark.parametrize("units", [float("nan"), float("inf"), -1.0])
def test_units_that_are_no_number_are_refused(units):
    with pytest.raises(InputError, match="per_step"):
        pm.measure(pm.Inference(nn.Linear(2, 2), torch.zeros(1, 2), per_step=units), budget_s=0.1)


def test_varying_shapes_and_nan_are_noticed(clock, timed):
    shapes = pm.measure(timed(noisy(0.01), lambda i: torch.zeros(1 + i % 5)), clock=clock, budget_s=2)
    assert "shape_varies" in codes(shapes)
    nan = pm.measure(timed(noisy(0.01), lambda _: torch.tensor([float("nan")])), clock=clock, budget_s=2)
    assert "nan_output" in codes(nan)
    clean = pm.measure(timed(noisy(0.01), lambda _: torch.zeros(3)), clock=clock, budget_s=2)
    assert not codes(clean) & {"nan_output", "shape_varies"}


def test_phases_add_up_to_the_step(clock, timed):
    m = pm.measure(timed(lambda _: 0.01), clock=clock, budget_s=5)
    shares = {phase.name: phase.share for phase in m.phases}
    assert shares == pytest.approx({"data": 0.25, "forward": 0.75, "rest": 0.0})
    assert sum(phase.mean_s for phase in m.phases) == pytest.approx(0.01)


@pytest.mark.measuring
def test_a_growing_program_is_said_to_grow(fresh_memory):
    kept = []

    def hoards() -> None:
        kept.append(fresh_memory(10**6))
        time.sleep(0.002)

    m = pm.measure(pm.Call(hoards), budget_s=1, phases=False)
    assert "memory_grows" in codes(m)
    assert m.memory.growth_bytes_per_step == pytest.approx(1e6, rel=0.3)


def test_a_real_model_is_measured_and_left_alone():
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.5)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    m = pm.measure(pm.Inference(model, torch.randn(32, 64), unit="images"), budget_s=0.2)
    assert m.complete
    assert m.unit == "images"
    assert m.units_per_step == 32
    assert m.peak_bytes > 50e6
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert state.shape == torch.get_rng_state().shape


@pytest.mark.parametrize("budget_s", [0, -1, float("nan")])
def test_a_budget_must_be_positive(clock, timed, budget_s):
    with pytest.raises(InputError, match="budget"):
        pm.measure(timed(noisy(0.01)), clock=clock, budget_s=budget_s)


@pytest.mark.measuring
def test_timing_a_sample_costs_less_than_a_microsecond_or_is_subtracted():
    overhead_s = timer_overhead(HostClock())
    m = pm.measure(pm.Call(lambda: time.sleep(0.001)), budget_s=0.3, phases=False)
    assert m.timer_overhead_s < 50 * overhead_s
    assert m.median_s >= 0.001


def test_the_cost_of_restoring_the_users_state_is_stated():
    model = nn.Linear(256, 256)
    work = pm.Training(
        model,
        nn.MSELoss(),
        torch.optim.SGD(model.parameters(), 0.1),
        [(torch.randn(4, 256), torch.randn(4, 256))],
    )
    m = pm.measure(work, budget_s=0.1)
    assert m.memory.held_bytes >= 256 * 257 * 4, "every parameter is copied"
