"""The loss or an output is NaN or infinite.

## What it does
Runs a few steps with every operator watched, and reports the first value that is not finite: the module whose output holds it
first, and, followed back, the operator and line whose own inputs were still finite. Minus infinity that a mask wrote is not
reported, nor is an infinity that is gone before the result.

## Why it costs
Everything computed from such a value is NaN or infinite too. In training one such step writes NaN into every parameter, and all
steps after it are lost; in inference the answer is wrong without an error. Speed is of no use before this is mended.

## Example
```python
def attend(scores):
    weights = torch.exp(scores)
    return weights / weights.sum(-1, keepdim=True)
```

## Use instead
Functions that stay in range, and float32 where a value can leave the range of half precision.
```python
def attend(scores):
    return torch.softmax(scores, dim=-1)
```

## Fix safety
No fix is applied: what the value should have been is for the program to say.

## References
- PyTorch, Numerical accuracy, "Extremal values": https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
- PyTorch, Automatic differentiation, "Anomaly detection": https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.quantity import counted
from pyrometer.rules.finding import Severity
from pyrometer.rules.numerics.patterns.origins import NOT_FINITE, cause, cure, story
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.numerics.report import NonFinite, NumericsReport

RULE = declare(code="PYR701", severity="error", scope="symptom", fix_class="semantic")


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """The first value of the watched steps that is not finite."""
    report = case.numerics
    if report is None or report.non_finite is None:
        return
    first = report.non_finite
    yield RULE.finding(
        severity=_severity(report, first),
        message=f"{_what(report, first)}: {story(first)}",
        where=place_of(case, cause(first)),
        evidence={
            "kind": first.kind,
            "step": first.step,
            "num_steps": report.num_steps,
            "num_non_finite_steps": report.num_non_finite_steps,
            "seen_in_module": first.seen_in,
            "source": first.source,
            "source_name": first.source_name,
        },
        links=["/numerics/non_finite"],
        confidence="high" if first.source != "unknown" else "medium",
        advice=_advice(report, first),
    )


def _severity(report: NumericsReport, first: NonFinite) -> Severity:
    """A value that the result does not hold is harmless forward; backward it becomes NaN even behind a `where`."""
    if first.in_result:
        return "error"
    return "warning" if report.kind == "training" else "info"


def _what(report: NumericsReport, first: NonFinite) -> str:
    value = NOT_FINITE[first.kind]
    if first.in_result:
        result = "the loss" if report.kind == "training" else "the output"
        times = f"in {report.num_non_finite_steps} of {counted(report.num_steps, 'step')}"
        return f"{result} is {value} {times}"
    return (
        f"the output of module {first.seen_in or 'the model'} holds {value} values that its result does not"
    )


def _advice(report: NumericsReport, first: NonFinite) -> str:
    if first.source == "input" and first.overflow is None:
        return (
            f"Input {first.source_name} is not finite before the model sees it: clean the data, or raise where it is loaded "
            "with `torch.isfinite(batch).all()`."
        )
    if first.source == "parameter" and first.overflow is None:
        earlier = " of the steps before" if report.kind == "training" else ""
        return f"Parameter {first.source_name} is broken: go back to an earlier checkpoint, and look at the gradients{earlier}."
    return cure(cause(first))
