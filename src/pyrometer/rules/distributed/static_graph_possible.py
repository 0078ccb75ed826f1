"""DistributedDataParallel searches for the same unused parameters in every step.

## What it does
Reads the settings of the wrapped model and looks at the gradients of a few steps: where the same parameters get none in each of
them, the graph is the same in every step, and `static_graph` finds them once.

## Why it costs
`find_unused_parameters` walks the autograd graph on the host in every forward pass, and ranks exchange a map of what they used.
With a static graph that is done in the first step, and buckets follow the order in which gradients really come.

## Example
```python
model = DistributedDataParallel(model, find_unused_parameters=True)
```

## Use instead
```python
model = DistributedDataParallel(model, static_graph=True)
```

## Fix safety
No fix is applied: a program whose later steps use other parameters fails, or trains with wrong gradients.

## References
- PyTorch, DistributedDataParallel, "static_graph": https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.distributed.patterns.wrapping import distributed_wrappers, rewrapped
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR606",
    severity="info",
    fix_class="semantic",
    lever="ddp_static_graph",
    limits=(Limit("min_steps", 3, "fewer steps do not show that the graph stays the same"),),
)


@RULE.in_evidence("program", "numerics")
def explain(case: Case) -> Findings:
    """The same parameters are left out in every step."""
    gradients = case.numerics.gradients if case.numerics is not None else None
    if gradients is None or len(gradients.norms) < case.limit(RULE, "min_steps"):
        return
    if gradients.sometimes or not gradients.never:
        return
    for index, wrapper in distributed_wrappers(case):
        searches = wrapper.settings.get("find_unused_parameters") is True
        if searches and wrapper.settings.get("static_graph") is False:
            yield RULE.finding(
                message=(
                    f"the same {counted(len(gradients.never), 'parameter')} are unused in each of "
                    f"{counted(len(gradients.norms), 'step')}, and are searched in all of them"
                ),
                where=Place(module=wrapper.path),
                evidence={"unused": gradients.never[:10], "num_steps": len(gradients.norms)},
                links=[f"/program/wrappers/{index}", "/numerics/gradients/never"],
                confidence="medium",
                advice=(
                    "Take these parameters out of training with `requires_grad_(False)` and leave the search out, or set "
                    "`static_graph=True` if every step uses the same ones."
                ),
                rewrite=rewrapped(case, static_graph=True),
                resource="comm",
            )
