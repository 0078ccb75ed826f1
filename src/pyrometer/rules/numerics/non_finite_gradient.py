"""Gradients are NaN or infinite although the loss is finite.

## What it does
Looks at the gradient of each parameter before the optimizer's step. Of the first one in the backward pass that is not finite it
names the operator, with the line and module of the forward pass that it belongs to. Steps that a GradScaler skipped because
its scale was still too large are not reported; nor is what follows from a loss that is not finite.

## Why it costs
The optimizer writes the gradient into the parameters and into its own state: after one such step the model is lost, and so is
all computing since the last checkpoint.

## Example
```python
distance = torch.sqrt(((a - b) ** 2).sum(-1))
distance.mean().backward()
```

## Use instead
Functions whose slope is defined everywhere. Where a branch must be left out, replace its argument and not its result:
`torch.where` multiplies the slope of the branch not taken by zero, which gives NaN when that slope is infinite.
```python
distance = torch.linalg.vector_norm(a - b, dim=-1)
distance.mean().backward()
```

## Fix safety
No fix is applied: it changes what is computed at the points where the slope is not finite.

## References
- PyTorch, Autograd mechanics, "Gradients for non-differentiable functions": https://docs.pytorch.org/docs/stable/notes/autograd.html
- PyTorch, Automatic differentiation, "Anomaly detection": https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.numerics.patterns.origins import NOT_FINITE, cause, cure, story
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.numerics.report import NonFiniteGradient, NumericsReport

RULE = declare(code="PYR702", severity="error", scope="symptom", fix_class="semantic")


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """The first gradient that is not finite, in the first step that has one."""
    report = case.numerics
    gradient = None if report is None else _first(report)
    if report is None or gradient is None:
        return
    bad = report.gradients.non_finite if report.gradients is not None else []
    origin = gradient.origin
    text = f": {story(origin)}" if origin is not None else ""
    yield RULE.finding(
        message=(
            f"the gradient of {gradient.parameter} is {NOT_FINITE[gradient.kind]} in {gradient.num_steps} of "
            f"{counted(report.num_steps, 'step')}{text}"
        ),
        where=place_of(case, cause(origin))
        if origin is not None
        else Place(module=gradient.parameter.rpartition(".")[0]),
        evidence={
            "parameter": gradient.parameter,
            "kind": gradient.kind,
            "step": gradient.step,
            "num_steps": gradient.num_steps,
            "num_parameters": len(bad),
            "skipped_by_scaler": gradient.all_skipped,
        },
        links=["/numerics/gradients/non_finite/0"],
        confidence="medium" if origin is None or gradient.all_skipped else "high",
        advice=_advice(gradient),
    )


def _first(report: NumericsReport) -> NonFiniteGradient | None:
    """The gradient to speak about; none that follows from the loss, or that a falling scale accounts for."""
    bad = report.gradients.non_finite if report.gradients is not None else []
    first = next(iter(bad), None)
    if first is None:
        return None
    if report.non_finite is not None and report.non_finite.in_result and report.non_finite.step <= first.step:
        return None
    # No scale mends NaN; infinities go away once it is small enough, which a few steps cannot tell.
    never_mends = first.kind == "nan" and first.num_steps == report.num_steps
    return first if not first.all_skipped or never_mends else None


def _advice(gradient: NonFiniteGradient) -> str:
    if gradient.origin is None:
        return (
            "Run one step under `torch.autograd.set_detect_anomaly(True)` to see which operator it comes from; "
            "look for roots, divisions and logarithms at 0."
        )
    return cure(cause(gradient.origin))
