from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest
import torch
from torch import nn

from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.record import Evaluation, ModeResult
from pyrometer.compiler.report import CompileReport
from pyrometer.rules.case import Case
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.workload.inference import Inference

replace = msgspec.structs.replace


class Chain(nn.Module):
    """Operators that one loop over memory can do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.relu(x * 1.01 + 0.1) - 0.05
        return x


@pytest.fixture(scope="module")
def tried() -> CompileReport:
    """A small model, put behind torch.compile for the report only."""
    compile_ = torch.compile
    torch._dynamo.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "compile", lambda model, mode: compile_(model, backend="eager"))
        return inspect_compile(Inference(Chain(), torch.ones(4, 4)), budget_s=0.2, steps=2)


@pytest.fixture
def timed(tried) -> Callable[..., Case]:
    def make(*, as_written: bool = False, evaluation: Evaluation | None = None, **cost: object) -> Case:
        given = {"outcome": "faster", "ratio": 0.5, "ci_low": 0.48, "ci_high": 0.52, "break_even_steps": 300}
        report = replace(
            tried,
            cost=replace(tried.cost, **{**given, **cost}),
            as_written=as_written,
            evaluation=evaluation,
        )
        return Case(target="", compiled=report)

    return make


def test_an_inspection_says_that_the_program_compiles_nothing(tried):
    assert not tried.as_written
    assert is_hypothetical(tried)


def test_what_was_measured_faster_is_the_gain(timed, findings):
    (finding,) = findings("PYR414", timed())

    assert (
        finding.message
        == "Compiled the step is 2.00× faster (1.92–2.08); compiling is repaid after 300 steps"
    )
    assert (finding.advice.gain.ratio_low, finding.advice.gain.ratio_high) == (0.48, 0.52)
    assert finding.advice.gain.method == "measured"
    assert finding.advice.lever == "compile"
    assert finding.advice.sketch == "model = torch.compile(model)"


def test_the_best_evaluated_mode_is_named(timed, findings):
    modes = [
        ModeResult(mode="eager", outcome="reference", ratio=1.0),
        ModeResult(
            mode="max-autotune", outcome="faster", ratio=0.4, ci_low=0.39, ci_high=0.41, break_even_steps=900
        ),
    ]
    evaluation = Evaluation(modes=modes, best="max-autotune", sentence="")
    (finding,) = findings("PYR414", timed(evaluation=evaluation))
    assert finding.advice.gain.ratio_high == 0.41
    assert finding.advice.sketch == 'model = torch.compile(model, mode="max-autotune")'
    assert finding.links == ["/compiled/evaluation/modes/1"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"as_written": True}, id="it compiles already"),
        pytest.param({"outcome": "undecided"}, id="undecided"),
        pytest.param({"outcome": "slower", "ratio": 1.2}, id="slower"),
        pytest.param({"ratio": 0.97, "ci_low": 0.96, "ci_high": 0.98}, id="hardly faster"),
        pytest.param({"break_even_steps": 5000}, id="not repaid"),
        pytest.param({"break_even_steps": None}, id="never repaid"),
    ],
)
def test_near_misses(timed, findings, given):
    assert findings("PYR414", timed(**given)) == []


def test_what_computes_something_else_is_not_advised(timed, findings):
    evidence = timed()
    error = replace(evidence.compiled.error, within_tolerance=False)
    wrong = Case(target="", compiled=replace(evidence.compiled, error=error))
    assert findings("PYR414", wrong) == []


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_a_chain_of_elementwise_operators_is_faster_compiled(findings):
    x = torch.ones(256, 512)
    report = inspect_compile(Inference(Chain(), x), budget_s=4.0, run_steps=1_000_000)
    (finding,) = findings("PYR414", Case(target="", compiled=report))
    assert finding.advice.gain.ratio_high < 0.95

    followed = inspect_compile(Inference(torch.compile(Chain()), x), budget_s=4.0, run_steps=1_000_000)
    assert followed.cost.ratio < 0.95
    assert findings("PYR414", Case(target="", compiled=followed)) == []
    assert findings("PYR405", Case(target="", compiled=followed)) == []
