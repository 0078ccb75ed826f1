"""Gradients explode.

## What it does
Compares the gradient over all parameters from step to step and with the size of the weights, and the first layers with the last.
It speaks where the norm grows tenfold or more within the watched steps without ever falling, where it is a thousand times that
of the weights, or where it grows ten-thousandfold from the last layers to the first.

## Why it costs
A step along such a gradient throws the weights far off: the loss jumps or becomes NaN, and the steps until it is back, or all
since the last checkpoint, were for nothing.

## Example
```python
loss.backward()
optimizer.step()
```

## Use instead
Limit the norm, warm the learning rate up, and normalise between layers.
```python
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
optimizer.step()
```

## Fix safety
No fix is applied: clipping, the learning rate and normalisation change what is learnt.

## References
- PyTorch, torch.nn.utils.clip_grad_norm_: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
- Pascanu, Mikolov, Bengio, "On the difficulty of training recurrent neural networks": https://arxiv.org/abs/1211.5063
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import significant
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.numerics.report import Gradients

RULE = declare(
    code="PYR703",
    severity="warning",
    scope="symptom",
    fix_class="semantic",
    limits=(
        Limit(
            "min_growth", 10.0, "from step to step norms vary by a factor of two or three in sound training"
        ),
        Limit(
            "min_over_weights",
            1000.0,
            "with common learning rates of 1e-3 one step then replaces the weights",
        ),
        Limit(
            "min_depth_ratio", 10_000.0, "layers of different kinds differ a hundredfold in sound networks"
        ),
    ),
)


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """Norms that grow over steps, over depth, or are far above the weights."""
    gradients = case.numerics.gradients if case.numerics is not None else None
    if gradients is None:
        return
    growth = gradients.growth if gradients.trend == "growing" else None
    relative, depth = over_weights(gradients), 1 / gradients.depth_ratio if gradients.depth_ratio else None
    if growth is not None and growth >= case.limit(RULE, "min_growth"):
        message = f"the gradient's norm grows {significant(growth)}-fold in {len(gradients.norms)} steps, and in each of them"
        advice = "Lower the learning rate or warm it up, and limit the norm before the optimizer's step."
    elif depth is not None and depth >= case.limit(RULE, "min_depth_ratio"):
        message = f"gradients grow {significant(depth)}-fold from the last layers to the first"
        advice = "Normalise between layers and scale the initial weights by the fan-in; limiting the norm guards against the rest."
    elif relative is not None and relative >= case.limit(RULE, "min_over_weights"):
        message = f"the gradient's norm is {significant(relative)} times that of the weights"
        advice = "Average the loss instead of summing it, look at the scale of inputs and initial weights, and limit the norm."
    else:
        return
    yield RULE.finding(
        message=message,
        where=Place(module=_steepest(gradients)),
        evidence={
            "norms": [norm for norm in gradients.norms if norm is not None],
            "growth": gradients.growth,
            "first_over_last_layers": depth,
            "norm_over_weights": relative,
        },
        links=["/numerics/gradients"],
        confidence="medium",
        advice=advice,
        sketch="torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)",
    )


def over_weights(gradients: Gradients) -> float | None:
    """The median norm of a gradient over the norm of the weights; `None` where one of them is not known."""
    norms = [norm for norm in gradients.norms if norm is not None]
    return statistics.median(norms) / gradients.weight_norm if norms and gradients.weight_norm else None


def _steepest(gradients: Gradients) -> str | None:
    """The module with the largest gradient per weight in the last step that has one."""
    held = [
        (layer.rms[-1], layer.module) for layer in gradients.layers if layer.rms and layer.rms[-1] is not None
    ]
    return max(held, key=lambda pair: pair[0] or 0.0)[1] if held else None
