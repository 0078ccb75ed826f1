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

from pyrometer.rules.host.patterns.avoidable import evaluates, in_layer, is_worked_on, may_do_without
from pyrometer.rules.host.patterns.reads import Read, during, sure_reads
from pyrometer.rules.host.patterns.sizes import is_mask, mask_indexing
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import replace
from pyrometer.source.numbers import is_number
from pyrometer.source.rewriting import Rewrite, rewritten, spelled

RULE = declare(
    code="PYR106",
    about_devices=True,
    severity="warning",
    fix_class="tolerance",
    lever="remove_sync",
    limits=LIMITS,
)

KEEP_SHAPE = "Keep the shape: `torch.where(mask, x, value)` with a value that changes nothing, then reduce with the mask's count."
NEUTRAL = {"sum": "0", "nansum": "0", "any": "False", "all": "True", "prod": "1"}
"""What a masked element must be so that it leaves a reduction as it is, whatever the dtype."""

ELEMENTWISE = frozenset(["torch.isnan", "torch.isinf", "torch.isfinite"])


@RULE.in_source
def find(module: Module) -> Matches:
    """Mask indexing in hot code."""
    for read, why, confidence in sure_reads(module, mask_indexing):
        if not may_do_without(module, read.node) and (
            in_layer(why) or evaluates(module, why) or is_worked_on(module, read.node)
        ):
            continue
        advice, _ = advise(module, read)
        message = f"`{read.text}` selects with a boolean mask, whose size only the device knows{during(why)}"
        yield match(read.node, message, advice=advice, confidence=confidence, hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Indexing that a trace shows to wait, with what it costs."""

    def tell(stall: Stall) -> Told:
        if stall.module is None or stall.read is None:
            return Told(KEEP_SHAPE)
        return Told(*advise(stall.module, stall.read))

    return stall_findings(RULE, case, tell)


def advise(module: Module, read: Read) -> tuple[str, Rewrite | None]:
    """What to write instead, from what is done with the selection."""
    assert isinstance(read.node, ast.Subscript)
    x, index = module.source(read.node.value), read.node.slice
    if isinstance(index, ast.Tuple) or not is_mask(module, index):
        return KEEP_SHAPE, None
    reduced = kept_whole(module, read.node)
    if reduced is not None:
        call, text = reduced
        advice = f"Write `{text}`, which keeps the shape and never waits."
        return advice, rewritten(module, [replace(module, call, text)])
    statement = module.statement_of(read.node)
    if isinstance(statement, ast.AugAssign) and statement.target is read.node:
        return (
            f"Change all elements and keep the others: `{x} = torch.where({module.source(index)}, <new>, {x})`.",
            None,
        )
    return KEEP_SHAPE, None


def kept_whole(module: Module, selection: ast.Subscript) -> tuple[ast.Call, str] | None:
    """A reduction of what is selected, and the same of all elements; only where the mask surely has the shape of the tensor."""
    attribute = module.parent(selection)
    call = module.parent(attribute) if isinstance(attribute, ast.Attribute) else None
    where = spelled(module, "torch.where")
    if (
        not isinstance(attribute, ast.Attribute)
        or not isinstance(call, ast.Call)
        or call.args
        or call.keywords
        or where is None
        or not _is_of(module, selection.slice, selection.value)
    ):
        return None
    x, mask = module.source(selection.value), module.source(selection.slice)
    if attribute.attr in NEUTRAL:
        return call, f"{where}({mask}, {x}, {NEUTRAL[attribute.attr]}).{attribute.attr}()"
    if attribute.attr == "mean":
        return call, f"({where}({mask}, {x}, 0).sum() / ({mask}).sum())"
    return None


def _is_of(module: Module, mask: ast.expr, x: ast.expr) -> bool:
    """Whether a mask is made of the very tensor, element by element: it is compared with a number, or asked for NaN."""
    if isinstance(mask, ast.Name):
        given = module.assignments(mask.id, mask)
        return len(given) == 1 and not isinstance(given[0], ast.Name) and _is_of(module, given[0], x)
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return _is_of(module, mask.operand, x)
    if isinstance(mask, ast.Call):
        asked = mask.args[0] if len(mask.args) == 1 and module.name_of(mask.func) in ELEMENTWISE else None
        return asked is not None and ast.dump(asked) == ast.dump(x)
    return (
        isinstance(mask, ast.Compare)
        and len(mask.ops) == 1
        and ast.dump(mask.left) == ast.dump(x)
        and is_number(module, mask.comparators[0])
    )
