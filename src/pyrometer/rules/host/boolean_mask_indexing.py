"""A tensor is indexed with a boolean mask in every step.

## What it does
Finds `x[mask]` with a boolean mask in code that runs once per step, and in a trace the index operators that made the host
wait. `x[mask] = 0` fills in place without waiting, and is left alone.

## Why it costs
How many elements a mask selects is known only on the device. The host must be told before it can allocate the result: it
waits until all queued work is done. `torch.compile` breaks the graph or works with an unknown size.

## Example
```python
import torch


class Error(torch.nn.Module):
    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        errors = (scores - targets).abs()
        mask = targets > 0
        return errors[mask].sum()
```

## Use instead
Keep the shape, and give what is masked the value that changes nothing.
```python
import torch


class Error(torch.nn.Module):
    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        errors = (scores - targets).abs()
        mask = targets > 0
        return torch.where(mask, errors, 0).sum()
```

## Fix safety
No fix is applied: sums over another number of elements round differently, and later code may need the shorter tensor.

## References
- PyTorch, `torch.nonzero`, which says that it synchronises: https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html
- PyTorch, `torch.where`: https://docs.pytorch.org/docs/stable/generated/torch.where.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.avoidable import in_layer, may_do_without
from pyrometer.rules.host.patterns.reads import Read, during, sure_reads
from pyrometer.rules.host.patterns.sizes import is_mask, mask_indexing
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.match import Match, match
from pyrometer.rules.registry import declare

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.rules.finding import Finding
    from pyrometer.source.module import Module

RULE = declare(
    code="PYR106",
    about_devices=True,
    name="boolean-mask-indexing",
    doc=__doc__,
    severity="warning",
    fix_class="tolerance",
    lever="remove_sync",
    limits=LIMITS,
)

KEEP_SHAPE = "Keep the shape: `torch.where(mask, x, value)` with a value that changes nothing, then reduce with the mask's count."
NEUTRAL = {
    "sum": "0",
    "nansum": "0",
    "any": "False",
    "all": "True",
    "prod": "1",
    "amax": "-torch.inf",
    "amin": "torch.inf",
}
"""What a masked element must be so that it leaves a reduction as it is."""


@RULE.in_source
def find(module: Module) -> Iterator[Match]:
    """Mask indexing in hot code."""
    for read, why, confidence in sure_reads(module, mask_indexing):
        if in_layer(why) and not may_do_without(module, read.node):
            continue
        advice, _ = advise(module, read)
        message = f"`{read.text}` selects with a boolean mask, whose size only the device knows{during(why)}"
        yield match(read.node, message, advice=advice, confidence=confidence, hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Iterator[Finding]:
    """Indexing that a trace shows to wait, with what it costs."""

    def tell(stall: Stall) -> Told:
        if stall.module is None or stall.read is None:
            return Told(KEEP_SHAPE)
        return Told(*advise(stall.module, stall.read))

    return stall_findings(RULE, case, tell)


def advise(module: Module, read: Read) -> tuple[str, str | None]:
    """What to write instead, from what is done with the selection."""
    assert isinstance(read.node, ast.Subscript)
    x, index = module.source(read.node.value), read.node.slice
    if isinstance(index, ast.Tuple) or not is_mask(module, index):
        return KEEP_SHAPE, None
    mask = module.source(index)
    attribute = module.parent(read.node)
    call = module.parent(attribute) if isinstance(attribute, ast.Attribute) else None
    if (
        isinstance(attribute, ast.Attribute)
        and isinstance(call, ast.Call)
        and not call.args
        and not call.keywords
    ):
        if attribute.attr in NEUTRAL:
            rewrite = f"torch.where({mask}, {x}, {NEUTRAL[attribute.attr]}).{attribute.attr}()"
            return f"Write `{rewrite}`, which keeps the shape and never waits.", rewrite
        if attribute.attr == "mean":
            rewrite = f"torch.where({mask}, {x}, 0).sum() / ({mask}).sum()"
            return f"Write `{rewrite}`, which keeps the shape and never waits.", rewrite
    statement = module.statement_of(read.node)
    if isinstance(statement, ast.AugAssign) and statement.target is read.node:
        return f"Change all elements and keep the others: `{x} = torch.where({mask}, <new>, {x})`.", None
    return KEEP_SHAPE, None
