"""Gradients are computed that nobody reads.

## What it does
Follows, in a few recorded steps, what the backward pass makes, and adds up the operators whose gradients are gone, set to zero or
written over before an optimizer or anything else reads them.

## Why it costs
`backward()` computes the gradients of all parameters that want one. An attack, a saliency map or a style transfer needs that of its
input alone, and the gradient of a layer's weights takes as long as that of its input. The same holds for a frozen part whose parameters still want
gradients, and for a discriminator in the generator's step.

## Example
```python
image.requires_grad_(True)
loss = torch.nn.functional.cross_entropy(net(image), label)
net.zero_grad()
loss.backward()
step = image.grad.sign()
```

## Use instead
```python
image.requires_grad_(True)
loss = torch.nn.functional.cross_entropy(net(image), label)
(gradient,) = torch.autograd.grad(loss, image)
step = gradient.sign()
```
Of a part that is never trained: `part.requires_grad_(False)`, once, after it is built.

## Fix safety
No fix is applied: the gradients that remain are the same; whoever reads the others' `.grad` later than in the steps that were
followed finds none.

## References
- PyTorch, `torch.autograd.grad`: https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
- PyTorch, autograd mechanics, setting `requires_grad`: https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.dataflow.report import Unread

RULE = declare(
    code="PYR531",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.05, "of the step: less does not repay a change"),),
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each backward pass that makes some."""
    flow = case.dataflow
    assert flow is not None
    for number, fact in enumerate(flow.unread):
        share = of_step(case, fact.share)
        if fact.what != "gradients" or share < case.limit(RULE, "min_share"):
            continue
        place = place_of(case, fact.where)
        yield RULE.finding(
            message=f"the backward pass{spoken(place)} computes gradients{_whose(fact)} that are freed before anything reads them: "
            f"{', '.join(fact.operators[:2])} take {format_percent(share)} of the step for that",
            where=place,
            evidence={
                "share": share,
                "num_leaves": fact.num_leaves,
                "modules": fact.modules,
                "operators": fact.operators,
            },
            links=[f"/dataflow/unread/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=removed(
                case,
                fact.share,
                "removal: the operators whose gradients nobody reads; at best with what their memory costs",
                best=1.4,
            ),
            confidence="high",
            advice="Keep them out of this graph: `.detach()` what other parts made where it enters, or run these parts under `torch.no_grad()`; of parts "
            "that are never trained, `requires_grad_(False)`. `torch.autograd.grad(loss, inputs)` computes the gradients of the inputs alone.",
            resource="backward",
        )


def _whose(fact: Unread) -> str:
    """Whose gradients these are, as far as that is known."""
    if fact.modules:
        return f" of {', '.join(f'`{module}`' for module in fact.modules)}"
    return f" of {fact.num_leaves} tensors" if fact.num_leaves else ""
