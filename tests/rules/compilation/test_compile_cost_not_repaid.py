from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import torch

from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.report import CompileReport
from pyrometer.rules.case import Case
from pyrometer.workload.inference import Inference

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def tiny() -> CompileReport:
    """A model of one small operator, whose compiled steps only add guards."""
    work = Inference(torch.compile(torch.nn.Linear(4, 4), backend="eager"), torch.ones(2, 4))
    return inspect_compile(work, budget_s=0.5, steps=2)


@pytest.fixture
def timed(tiny) -> Callable[..., Case]:
    """The same with costs and a length of the run."""

    def make(*, run_steps: int = 100, as_written: bool = True, **cost: object) -> Case:
        given = {
            "first_call_s": 10.0,
            "steady_s": 0.05,
            "eager_steady_s": 0.1,
            "outcome": "faster",
            "ratio": 0.5,
            "ci_low": 0.45,
            "ci_high": 0.55,
            "compile_s": 9.9,
            "break_even_steps": 199,
        }
        report = replace(
            tiny,
            cost=replace(tiny.cost, **{**given, **cost}),
            runtime=replace(tiny.runtime, run_steps=run_steps),
            as_written=as_written,
        )
        return Case(target="", compiled=report)

    return make


def test_a_tiny_program_is_slower_compiled_and_running_it_eagerly_is_the_gain(tiny, findings):
    (finding,) = findings("PYR405", Case(target="", compiled=tiny))

    assert tiny.cost.outcome == "slower"
    assert "times as long as eager ones" in finding.message
    assert finding.advice.lever == "compile"
    assert finding.advice.gain.method == "measured"
    assert finding.advice.gain.ratio_low <= 1 - finding.cost.share <= finding.advice.gain.ratio_high < 1
    assert finding.confidence == "high"


def test_a_run_that_is_too_short_says_how_many_steps_repay(timed, findings):
    (finding,) = findings("PYR405", timed())

    assert finding.message == (
        "Compiling is repaid after 199 steps; with the 9.90 s of compiling, a run of 100 steps takes 1.50 times as long"
    )
    compiled_s, eager_s = 10.0 + 99 * 0.05, 100 * 0.1
    assert finding.cost.share == pytest.approx(1 - eager_s / compiled_s)
    assert finding.cost.seconds_per_step == pytest.approx((compiled_s - eager_s) / 100)
    assert finding.advice.gain.ratio_low == pytest.approx(100 * 0.05 / 0.55 / compiled_s)
    assert finding.advice.gain.ratio_high == pytest.approx(100 * 0.05 / 0.45 / compiled_s)
    assert finding.evidence["break_even_steps"] == 199
    assert "longer than 199 steps" in finding.advice.text


def test_compiled_steps_that_are_no_faster_are_never_repaid(timed, findings):
    evidence = timed(outcome="same", ratio=1.0, ci_low=0.99, ci_high=1.01, break_even_steps=None)
    (finding,) = findings("PYR405", evidence)
    assert "no faster than eager ones" in finding.message


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"run_steps": 1000}, id="repaid"),
        pytest.param({"outcome": "undecided"}, id="undecided"),
        pytest.param({"outcome": "", "ratio": None}, id="not compared"),
        pytest.param({"as_written": False}, id="eager as written"),
        pytest.param({"first_call_s": 5.1}, id="lost less than can be told"),
    ],
)
def test_near_misses(timed, findings, given):
    assert findings("PYR405", timed(**given)) == []


def test_the_least_share_can_be_set(timed, findings):
    evidence = timed()
    strict = Case(target="", compiled=evidence.compiled, limits={"PYR405.min_share": 0.9})
    assert findings("PYR405", strict) == []
