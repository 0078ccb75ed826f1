from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.bench.matrix.numerics import TOLERANCES, numeric_error
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.record import Evaluation, ModeResult
from pyrometer.compiler.report import CompileReport
from pyrometer.rules.case import Case
from pyrometer.rules.compilation.compiled_output_drifts import REASONS
from pyrometer.workload.call import Call

replace = msgspec.structs.replace


def _scaled(factor: float) -> Callable[..., Any]:
    """A backend whose results are off by a factor."""

    def backend(graph: torch.fx.GraphModule, _inputs: object) -> Callable[..., Any]:
        return lambda *inputs: [part * factor for part in graph(*inputs)]

    return backend


def _inspected(factor: float) -> CompileReport:
    torch._dynamo.reset()
    work = Call(torch.compile(lambda x: x.sin() + 1, backend=_scaled(factor)), torch.ones(8))
    return inspect_compile(work, budget_s=0.1, steps=2)


@pytest.fixture(scope="module")
def drifting() -> CompileReport:
    return _inspected(1.01)


def test_a_backend_that_computes_something_else_is_an_error_with_the_tolerance(drifting, findings):
    (finding,) = findings("PYR409", Case(target="", compiled=drifting))

    assert finding.severity == "error"
    assert "by 0.0100 of the largest value" in finding.message
    assert "0.0001 is allowed (float32: another order of summation" in finding.message
    assert finding.evidence["max_rel"] == pytest.approx(0.01, rel=0.01)
    assert finding.links == ["/compiled/error"]
    assert "aot_eager" in finding.advice.text


def test_another_backend_says_which_part_it_is(drifting, findings):
    exact = _inspected(1.0)
    assert drifting.error.max_rel > 0
    assert exact.error.max_rel == 0
    assert findings("PYR409", Case(target="", compiled=exact)) == []


def test_a_difference_within_the_tolerance_is_no_drift(drifting, findings):
    error = numeric_error(torch.tensor([1.00001]), torch.ones(1), tolerance=1e-4)
    assert error.max_rel > 0
    assert findings("PYR409", Case(target="", compiled=replace(drifting, error=error))) == []


def test_outputs_that_could_not_be_compared_are_not_judged(drifting, findings):
    assert findings("PYR409", Case(target="", compiled=replace(drifting, error=None))) == []


def test_in_half_precision_the_casts_are_looked_at_first(drifting, findings):
    import torch._inductor.config as inductor

    error = replace(drifting.error, tolerance=TOLERANCES["bfloat16"], max_rel=0.1)
    (finding,) = findings("PYR409", Case(target="", compiled=replace(drifting, error=error)))
    assert "bfloat16" in finding.message
    assert finding.advice.rewrite == "torch._inductor.config.emulate_precision_casts = True"
    assert hasattr(inductor, "emulate_precision_casts")


def test_every_tolerance_has_its_reason():
    assert set(REASONS) == set(TOLERANCES.values())


def test_nan_is_told_as_a_mismatch(drifting, findings):
    error = replace(drifting.error, mismatch="NaN at other places")
    (finding,) = findings("PYR409", Case(target="", compiled=replace(drifting, error=error)))
    assert finding.message == "Compiled outputs differ from eager ones: NaN at other places"


def test_a_program_that_compiles_nothing_is_only_warned(drifting, findings):
    report = replace(drifting, as_written=False)
    (finding,) = findings("PYR409", Case(target="", compiled=report))
    assert finding.severity == "warning"


def test_modes_that_drift_are_told_and_modes_that_failed_are_not(drifting, findings):
    modes = [
        ModeResult(mode="eager", outcome="reference"),
        ModeResult(mode="max-autotune", outcome="faster", max_rel=0.2, failure="the outputs differ by 0.2"),
        ModeResult(mode="default", outcome="failed", failure="no compiler"),
    ]
    report = replace(drifting, error=None, evaluation=Evaluation(modes=modes, best="eager", sentence="eager"))
    (finding,) = findings("PYR409", Case(target="", compiled=report))
    assert "max-autotune" in finding.message
    assert finding.links == ["/compiled/evaluation/modes/1"]
