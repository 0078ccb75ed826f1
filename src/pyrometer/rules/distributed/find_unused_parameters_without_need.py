"""DistributedDataParallel looks for unused parameters, and there are none.

## What it does
Reads the setting of the wrapped model and looks at the gradients of a few steps: where every trainable parameter gets one in every
step, the search finds nothing. In source text it finds the setting beside `static_graph=True`, which makes it needless.

## Why it costs
In each forward pass the whole autograd graph is walked on the host to find parameters that take no part, and ranks exchange a map
of those they used.

## Example
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model, find_unused_parameters=True, static_graph=True)
```

## Use instead
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model, static_graph=True)
```

## Fix safety
No fix is applied: where a step of another kind leaves parameters out, DistributedDataParallel raises without this setting.

## References
- PyTorch, DistributedDataParallel: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- PyTorch, Performance Tuning Guide, distributed section: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

from pyrometer.place import Place
from pyrometer.quantity import counted
from pyrometer.rules.distributed.patterns.wrapping import distributed_wrappers, is_set, rewrapped, wrappings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR604",
    severity="warning",
    fix_class="semantic",
    lever="ddp_no_unused",
    limits=(Limit("min_steps", 2, "one step may take another path than the next"),),
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Both settings at once."""
    for call in wrappings(module):
        if is_set(module, call, "find_unused_parameters") and is_set(module, call, "static_graph"):
            yield match(
                call,
                "`static_graph=True` knows which parameters are used; they are searched in each step all the same",
                advice="Leave `find_unused_parameters` out.",
            )


@RULE.in_evidence("program", "numerics")
def explain(case: Case) -> Findings:
    """The setting is on, and every parameter was used."""
    gradients = case.numerics.gradients if case.numerics is not None else None
    if gradients is None or len(gradients.norms) < case.limit(RULE, "min_steps"):
        return
    if gradients.never or gradients.sometimes:
        return
    for index, wrapper in distributed_wrappers(case):
        if wrapper.settings.get("find_unused_parameters") is True:
            steps = counted(len(gradients.norms), "step")
            yield RULE.finding(
                message=f"DistributedDataParallel searches for unused parameters in each step, and all were used in each of {steps}",
                where=Place(module=wrapper.path),
                evidence={"num_steps": len(gradients.norms), "num_unused": 0},
                links=[f"/program/wrappers/{index}", "/numerics/gradients"],
                confidence="medium",
                advice="Leave `find_unused_parameters` out, unless some step takes a path that leaves parameters out.",
                rewrite=rewrapped(case, find_unused_parameters=False),
                resource="comm",
            )
