"""An operator with a data-dependent output size runs in every step.

## What it does
Finds `nonzero`, `argwhere`, `unique`, `masked_select`, `bincount`, `torch.where` with one argument, and `repeat_interleave`
with a tensor of repeats and no `output_size`, in code that runs once per step; and in a trace those that made the host wait.

## Why it costs
The host must know the size of a result before it can go on. Here only the device knows it, so that the host waits until all
queued work is done. `torch.compile` breaks the graph or works with an unknown size.

## Example
```python
import torch

for batch in loader:
    hits = torch.nonzero(model(batch) > 0.5)
    rows = torch.repeat_interleave(features, counts, dim=0)
    criterion(rows, hits).backward()
```

## Use instead
Name an upper bound of the size, or give the size where the program knows it.
```python
import torch

for batch in loader:
    hits = torch.nonzero_static(model(batch) > 0.5, size=64, fill_value=-1)
    rows = torch.repeat_interleave(features, counts, dim=0, output_size=num_rows)
    criterion(rows, hits).backward()
```

## Fix safety
No fix is applied: a bound cuts off what exceeds it, and only the program knows its sizes.

## References
- PyTorch, `torch.nonzero`, which says that it synchronises: https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html
- PyTorch, `torch.repeat_interleave`, `output_size`: https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.host.patterns.avoidable import evaluates, in_layer, is_worked_on, may_do_without
from pyrometer.rules.host.patterns.reads import Read, during, sure_reads
from pyrometer.rules.host.patterns.sizes import sized_by_data
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(
    code="PYR107",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

BOUND = "Use `torch.nonzero_static(x, size=n)` with an upper bound, or keep the mask and work on all elements with `torch.where`."
INSTEAD = {
    "repeat_interleave": "Pass `output_size=`, the sum of the repeats, where the program knows it without asking the device.",
    "unique": "Count into bins of known range with `scatter_add_`, or sort and work on the sorted values.",
    "bincount": "Add ones into `torch.zeros(num_bins, device=x.device)` with `scatter_add_`: the number of bins is known.",
    "masked_select": "Keep the mask and the shape: `torch.where(mask, x, value)`.",
}
OPERATORS = {"_unique2": "unique", "unique_consecutive": "unique", "unique_dim": "unique"}


@RULE.in_source
def find(module: Module) -> Matches:
    """Such operators in hot code."""
    for read, why, confidence in sure_reads(module, sized_by_data):
        if not may_do_without(module, read.node) and (
            in_layer(why) or evaluates(module, why) or is_worked_on(module, read.node)
        ):
            continue
        message = f"`{read.text}` has a size that only the device knows; the host waits for it{during(why)}"
        yield match(read.node, message, advice=advise(read), confidence=confidence, hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Such operators that a trace shows to wait, with what they cost."""

    def tell(stall: Stall) -> Told:
        operator = stall.point.name.rpartition("::")[2]
        known = INSTEAD.get(OPERATORS.get(operator, operator), BOUND)
        return Told(advise(stall.read) if stall.read is not None else known)

    return stall_findings(RULE, case, tell)


def advise(read: Read) -> str:
    """What to do about one call, by its name."""
    assert isinstance(read.node, ast.Call)
    function = read.node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return INSTEAD.get(OPERATORS.get(name, name), BOUND)
