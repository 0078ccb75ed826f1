"""Gradients vanish before they reach the first layers.

## What it does
Compares the gradients of weights in the first fifth of the layers, in the order in which they run, with the last fifth, and
finds layers whose gradient is exactly zero in every step. It names saturated activations and units that are never active where
it saw them.

## Why it costs
Layers without a gradient do not learn: each step computes their forward and backward pass and changes nothing.

## Example
```python
layers = [nn.Sequential(nn.Linear(64, 64), nn.Sigmoid()) for _ in range(12)]
```

## Use instead
Residual connections, normalisation, and activations that do not saturate.
```python
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.layer(self.norm(x)))
```

## Fix safety
No fix is applied: the model becomes another one.

## References
- He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition": https://arxiv.org/abs/1512.03385
- PyTorch, torch.nn.init: https://docs.pytorch.org/docs/stable/nn.init.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent, significant
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.numerics.report import Gradients, NumericsReport

RULE = declare(
    code="PYR704",
    severity="warning",
    scope="symptom",
    fix_class="semantic",
    limits=(
        Limit(
            "min_depth_ratio", 10_000.0, "layers of different kinds differ a hundredfold in sound networks"
        ),
        Limit(
            "min_steps", 3, "weights that start at zero hold others back for a step, as in low-rank adapters"
        ),
        Limit("min_saturated", 0.5, "fewer values at the ends of the range leave most units their slope"),
    ),
)


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """Gradients that get lost over depth, and layers that get none."""
    report = case.numerics
    gradients = report.gradients if report is not None else None
    if report is None or gradients is None:
        return
    why = _reason(report, case.limit(RULE, "min_saturated"))
    ratio = gradients.depth_ratio
    silent = _without(gradients, int(case.limit(RULE, "min_steps")))
    if ratio is not None and ratio >= case.limit(RULE, "min_depth_ratio"):
        message = f"the first layers get gradients {significant(ratio)} times smaller than the last ones"
        where = gradients.layers[0].module if gradients.layers else None
    elif silent:
        message = f"the gradient of {counted(len(silent), 'layer')} is exactly zero in every step, first of {silent[0]}"
        where = silent[0]
    else:
        return
    yield RULE.finding(
        message=message + why,
        where=Place(module=where),
        evidence={
            "last_over_first_layers": ratio,
            "num_layers": len(gradients.layers),
            "layers_at_zero": silent[:10],
        },
        links=["/numerics/gradients/layers"],
        confidence="medium",
        advice=(
            "Add residual connections and normalisation, use GELU, SiLU or ReLU instead of sigmoid and tanh between layers, and "
            "look at how the weights are initialised."
        ),
    )


def _without(gradients: Gradients, min_steps: int) -> list[str]:
    return [
        layer.module
        for layer in gradients.layers
        if len(layer.rms) >= min_steps and all(rms == 0.0 for rms in layer.rms)
    ]


def _reason(report: NumericsReport, min_saturated: float) -> str:
    """The activations that hold gradients back, in a clause."""
    saturated = [
        activation for activation in report.activations if (activation.saturated or 0.0) >= min_saturated
    ]
    if saturated:
        worst = max(saturated, key=lambda activation: activation.saturated or 0.0)
        where = worst.where.module or "the model"
        return (
            f"; {format_percent(worst.saturated)} of the values of {worst.function} in {where} are saturated"
        )
    dead = [activation for activation in report.activations if (activation.dead or 0.0) >= min_saturated]
    if dead:
        worst = max(dead, key=lambda activation: activation.dead or 0.0)
        return f"; {format_percent(worst.dead)} of the units of relu in {worst.where.module or 'the model'} are never active"
    return ""
