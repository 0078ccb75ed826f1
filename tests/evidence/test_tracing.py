"""What tracing adds to a check: a report beside the measurement, or a note of why there is none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
from calling import Ended
from torch import nn

from pyrometer.errors import InputError
from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observe import observe
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers import trace as tracing
from pyrometer.evidence.observers.trace import MOST_STEPS
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import script_observation
from pyrometer.hardware.environment import read_environment
from pyrometer.report.schema import schema_of
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.script.observed import ObservedScript, TracedSteps


@pytest.fixture
def small() -> Inference:
    """A net that takes a fraction of a millisecond."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    return Inference(net, (torch.randn(8, 64),), unit="frames", per_step=8)


def raises_under_a_profiler() -> None:
    if torch.autograd._profiler_enabled():  # type: ignore[attr-defined]
        raise RuntimeError("not while somebody looks")
    time.sleep(1e-3)


def test_a_check_of_a_workload_says_where_its_step_goes(small: Inference) -> None:
    evidence = observe(small, "model.py:small", ObserveOptions(budget_s=0.3)).evidence
    assert evidence.measurement is not None
    assert evidence.trace is not None
    assert 1 <= len(evidence.trace.steps) <= MOST_STEPS
    assert evidence.trace.breakdown_ns.total_ns == evidence.trace.span_ns
    assert {"forward"} <= {phase.name for phase in evidence.trace.phases.phases}
    assert {module.module for module in evidence.trace.top_modules} >= {"0", "1", "2"}
    assert any(op.name == "aten::addmm" for op in evidence.trace.top_ops)
    assert evidence.trace.memory.devices, "allocations are recorded"
    assert evidence.trace_verdict is not None
    assert evidence.trace_verdict.sentence
    assert evidence.capture is not None
    assert any("peaks" in note for note in evidence.notes), (
        "without a store there are no peaks, and that is said"
    )


def notes_on_tracing(evidence: Evidence) -> list[str]:
    """Why there is no trace; other notes are of the machine, as where a test's own timeout has the timer."""
    lead = "no step could be traced: "
    return [note.removeprefix(lead) for note in evidence.notes if note.startswith(lead)]


def test_tracing_comes_after_all_timing(small: Inference, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise InputError("no room for a trace; free some and check again")

    monkeypatch.setattr(tracing, "record_trace", refuse)
    evidence = observe(small, "model.py:small", ObserveOptions(budget_s=0.3)).evidence
    assert evidence.measurement is not None
    assert evidence.measurement.failure is None
    assert (evidence.trace, evidence.trace_verdict, evidence.capture) == (None, None, None)
    assert notes_on_tracing(evidence) == ["no room for a trace; free some and check again"]


def test_a_step_that_cannot_be_traced_is_still_measured() -> None:
    evidence = observe(Call(raises_under_a_profiler), "t.py:work", ObserveOptions(budget_s=0.2)).evidence
    assert evidence.measurement is not None
    assert evidence.measurement.median_s >= 1e-3
    assert evidence.trace is None
    (note,) = notes_on_tracing(evidence)
    assert "not while somebody looks" in note


def test_a_failed_or_interrupted_measurement_is_not_traced() -> None:
    calls = iter(range(10**9))

    def step() -> None:
        if next(calls) == 25:
            raise ValueError("bad batch")
        time.sleep(1e-3)

    evidence = observe(Call(step), "t.py:work", ObserveOptions(budget_s=2)).evidence
    assert evidence.measurement is not None
    assert evidence.measurement.failure is not None
    assert evidence.trace is None
    assert evidence.notes == []
    assert [warning.code for warning in evidence.measurement.warnings][:1] == ["failed"]


@pytest.mark.parametrize(
    ("step_s", "budget_s", "steps"),
    [(1e-4, 10, MOST_STEPS), (1.0, 10, 1), (0.25, 10, 2), (0.0, 1, MOST_STEPS)],
)
def test_the_budget_says_how_many_steps(step_s: float, budget_s: float, steps: int) -> None:
    assert tracing.steps_within(budget_s, step_s) == steps


@pytest.mark.slow
def test_operators_are_put_against_this_machines_peaks(small: Inference, tmp_path: Path) -> None:
    blank = Observed(evidence=Evidence(target="t", environment=read_environment()))
    seen = tracing.observe(small, blank, ObserveOptions(budget_s=1, peaks_folder=tmp_path))
    assert seen.evidence.notes == []
    assert seen.trace is not None
    assert seen.evidence.trace is not None
    matmul = next(point for point in seen.evidence.trace.roofline if point.op == "aten::addmm")
    assert matmul.share_of_roof is not None
    assert matmul.bound in {"compute", "memory", "overhead"}
    assert list(tmp_path.iterdir()), "peaks are kept for the next time"


def observed(num_steps: int, traced: TracedSteps | None) -> ObservedScript:
    """A script whose steps take 10 ms, and 100 ms around the profiler."""
    slow = range(traced.first - 1, traced.first + traced.num_steps + 1) if traced else range(0)
    step_ns = [100_000_000 if i in slow else 10_000_000 for i in range(num_steps)]
    return ObservedScript(
        argv=["train.py"], exit_code=0, wall_s=3.0, import_s=1.0, steps_from="optimizer steps",
        step_start_ns=np.cumsum([0, *step_ns[:-1]]).tolist(), step_ns=step_ns, regular=[True] * num_steps,
        phase_ns={"rest": step_ns}, outside_steps_s=1.0, traced=traced,
    )  # fmt: skip


def test_traced_steps_and_their_neighbours_do_not_count_as_timing() -> None:
    seen = script_observation(observed(60, TracedSteps(first=20, num_steps=3)), "train.py")
    assert len(seen.times_s) == 60 - 1 - 5
    assert max(seen.times_s) == pytest.approx(0.010)
    untouched = script_observation(observed(60, None), "train.py")
    assert len(untouched.times_s) == 59


MODEL = """
import torch
from torch import nn
import pyrometer as pm

def small():
    return pm.Inference(nn.Linear(64, 64), torch.randn(8, 64), unit="frames", per_step=8)

def shy():
    def step():
        if torch.autograd._profiler_enabled():
            raise RuntimeError("not while somebody looks")
        sum(range(10000))
    return pm.Call(step)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


@pytest.mark.exhaustive
def test_the_verb_prints_and_stores_the_trace(project: Path, call: Callable[..., Ended]) -> None:
    done = call(project, "check", "model.py:small", "--budget", "300ms", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("check"))
    assert {"trace", "trace_verdict", "capture", "notes"} <= set(document["evidence"])
    assert (
        sum(document["evidence"]["trace"]["breakdown_ns"].values())
        == document["evidence"]["trace"]["span_ns"]
    )
    assert document["evidence"]["trace_verdict"]["sentence"]
    page = (project / document["report_path"]).read_text(encoding="utf-8")
    assert "Call tree" in page
    assert "aten::addmm" in page


@pytest.mark.slow
def test_the_verb_says_why_there_is_no_trace(project: Path, call: Callable[..., Ended]) -> None:
    done = call(project, "check", "model.py:shy", "--budget", "300ms", "--no-store", "--full")
    assert done.returncode == 0, done.stderr
    assert "per step" in done.stdout
    assert "no step could be traced" in done.stdout
