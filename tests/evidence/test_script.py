"""An observed script's steps become the same measurement as a workload's."""

from __future__ import annotations

import numpy as np
import pytest

from pyrometer.bench.summary import summarise
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import collected_share, observe_script, outcome_of, script_observation
from pyrometer.workload.script.observed import ObservedScript, TracedSteps

MS = 1_000_000


def observed(step_ms, **fields) -> ObservedScript:
    step_ns = [round(ms * MS) for ms in step_ms]
    forward = [ns // 2 for ns in step_ns]
    defaults = {
        "argv": ["train.py", "--epochs", "1"],
        "exit_code": 0,
        "wall_s": sum(step_ms) / 1e3 + 2,
        "import_s": 1.0,
        "steps_from": "optimizer steps",
        "step_start_ns": np.cumsum([0, *step_ns[:-1]]).tolist(),
        "step_ns": step_ns,
        "regular": [True] * len(step_ns),
        "phase_ns": {"forward": forward, "rest": [ns - f for ns, f in zip(step_ns, forward, strict=True)]},
        "outside_steps_s": 2.0,
    }
    return ObservedScript(**defaults | fields)


def test_the_first_step_is_apart_and_the_rest_is_measured():
    seen = script_observation(observed([500, *[10] * 60]), "train.py")
    m = summarise(seen, 0.99)
    assert m.first_call_s == pytest.approx(0.5)
    assert m.median_s == pytest.approx(0.010)
    assert m.num_samples == 60
    assert m.steady
    assert m.throughput == pytest.approx(100)


def test_a_step_with_an_evaluation_inside_does_not_count():
    times = [500, *[10] * 30, 900, *[10] * 30]
    regular = [True] * 31 + [False] + [True] * 30
    m = summarise(script_observation(observed(times, regular=regular), "train.py"), 0.99)
    assert m.max_s == pytest.approx(0.010)
    assert m.num_samples == 60


def test_what_collecting_takes_is_told_of_steps_without_an_observer():
    collected = [90 * MS, *[1 * MS] * 20, *[8 * MS] * 10]
    seen = observed([500, *[10] * 30], collected_ns=collected, sampled_steps=list(range(21, 31)))
    assert collected_share(seen) == pytest.approx(0.1)
    assert collected_share(observed([])) is None
    assert collected_share(observed([10] * 30)) is None, "an observer that did not look"


@pytest.mark.parametrize(("sampled", "growth"), [([*range(30)], 0.0), ([], 500.0), ([*range(59)], None)])
def test_memory_that_observers_keep_is_no_growth_of_the_script(sampled: list[int], growth: float | None):
    kept = [1000 * min(step, 30) for step in range(60)]
    seen = observed(
        [10] * 60, memory_steps=[*range(60)], memory_bytes=kept, peak_bytes=40_000, sampled_steps=sampled
    )
    memory = script_observation(seen, "t").memory
    assert memory is not None
    assert memory.growth_bytes_per_step == pytest.approx(growth, abs=200)


def test_the_share_of_evaluations_is_of_all_that_the_loop_does():
    assert outcome_of(observed([10] * 100, evaluation_s=3.0)).evaluation_share == pytest.approx(0.75)
    assert outcome_of(observed([10] * 100)).evaluation_share == 0


def test_phases_are_of_the_steady_steps_and_add_up():
    seen = script_observation(observed([500, 50, 40, 30, 20, *[10] * 60]), "train.py")
    phases = {phase.name: phase for phase in seen.phases}
    assert set(phases) == {"forward", "rest"}
    assert phases["forward"].mean_s == pytest.approx(0.005, rel=0.2)
    assert sum(phase.share for phase in phases.values()) == pytest.approx(1)


def test_device_times_are_preferred_where_all_are_known():
    times = [500, *[10] * 40]
    on_device = script_observation(observed(times, device_step_ns=[ns * MS for ns in [400, *[8] * 40]]), "t")
    assert on_device.clock == "device events"
    assert summarise(on_device, 0.99).median_s == pytest.approx(0.008)
    partly = script_observation(observed(times, device_step_ns=[None, *[8 * MS] * 40]), "t")
    assert partly.clock == "wall"


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        ({}, None),
        ({"exit_code": 3}, "the script ended with exit code 3"),
        ({"exit_code": -9}, "the script was ended by SIGKILL"),
        ({"exit_code": -2, "interrupted": True}, None),
    ],
)
def test_how_the_script_ended(fields, failure):
    m = summarise(script_observation(observed([10] * 30, **fields), "t"), 0.99)
    assert m.failure == failure
    assert m.complete == (failure is None and not m.interrupted)


def test_a_growing_script_is_said_to_grow():
    steps = list(range(60))
    fields = {
        "memory_steps": steps,
        "memory_bytes": [10**8 + i * 10**6 for i in steps],
        "peak_bytes": 2 * 10**8,
    }
    m = summarise(script_observation(observed([10] * 60, **fields), "t"), 0.99)
    assert m.memory.growth_bytes_per_step == pytest.approx(1e6)
    assert "memory_grows" in {caveat.code for caveat in m.warnings}


def test_what_rises_once_is_no_growth_of_a_script():
    steps = list(range(60))

    def caveats(rise_at: int, traced: TracedSteps | None) -> set[str]:
        levels = [10**8 + 10**6 * min(max(step - rise_at, 0), 20) for step in steps]
        fields = {"memory_steps": steps, "memory_bytes": levels, "peak_bytes": max(levels), "traced": traced}
        m = summarise(script_observation(observed([10] * 60, **fields), "t"), 0.99)
        return {caveat.code for caveat in m.warnings}

    assert "memory_grows" not in caveats(0, TracedSteps(first=10, num_steps=12))
    assert "memory_grows" in caveats(35, TracedSteps(first=2, num_steps=3))


def test_hints_for_a_script_do_not_speak_of_a_budget():
    m = summarise(script_observation(observed([500, 10, 11, 10, 11, 10]), "t"), 0.99)
    assert m.warnings
    assert all("--budget" not in caveat.advice.title for caveat in m.warnings)


def test_a_single_step_is_a_partial_result():
    m = summarise(script_observation(observed([500]), "t"), 0.99)
    assert not m.complete
    assert m.median_s == pytest.approx(0.5)


def test_a_script_that_never_steps_has_no_measurement(tmp_path):
    script = tmp_path / "quiet.py"
    script.write_text("print('nothing to see')\n")
    evidence = observe_script([str(script)], ObserveOptions(confidence=0.99)).evidence
    assert evidence.measurement is None
    assert evidence.script.exit_code == 0
    assert evidence.script.notes
