"""A `non_blocking` copy blocks, because its host memory is not pinned.

## What it does
Finds `.to(device, non_blocking=True)` and `.cuda(non_blocking=True)` in code that runs once per step, in a file whose loaders
do not pin their batches; and in a trace such calls whose copies came from pageable memory.

## Why it costs
A device reads the host's memory on its own only where that is pinned. From pageable memory the driver first copies into a
buffer of its own, with the host waiting for it; `non_blocking=True` changes nothing then, and the copy is not hidden.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4)
for inputs, targets in loader:
    inputs = inputs.to(device, non_blocking=True)
```

## Use instead
```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to(device, non_blocking=True)
```

## Fix safety
The results are the same. No fix is applied, since pinned memory is taken from what the machine can page out.

## References
- PyTorch, "A guide on good usage of non_blocking and pin_memory()": https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- PyTorch, `torch.utils.data`, "Memory Pinning": https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import ast
import re

from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.data.patterns.waiting import loader_rewrite
from pyrometer.rules.host.patterns.copying import copied, copy_cost, copy_gain, movers
from pyrometer.rules.host.patterns.reads import goes_to_cpu, hot_place, is_non_blocking
from pyrometer.rules.match import Matches, match
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR114",
    about_devices=True,
    severity="warning",
    fix_class="exact",
    lever="pin_memory",
    limits=(
        Limit(
            "min_share", 0.001, "of the time: copies that are not there to be seen cannot be hidden either"
        ),
    ),
)

LOADER = "torch.utils.data.DataLoader"
ADVICE = "Give the DataLoader `pin_memory=True`; for tensors made otherwise call `.pin_memory()` once, outside the loop."
PINS = re.compile(r"pin_memory(?!\s*=\s*False)")


@RULE.in_source
def find(module: Module) -> Matches:
    """Copies that do not wait, in files with loaders that do not pin."""
    loaders = list(module.calls(LOADER))
    if not loaders or PINS.search(module.text) or any(_passes_on(call) for call in loaders):
        return
    lines = " and ".join(str(call.lineno) for call in loaders[:2])
    for call in movers(module):
        why = hot_place(module, call) if is_non_blocking(module, call) else None
        if why is not None and not goes_to_cpu(module, call):
            message = f"`{module.source(call)}` waits nevertheless: the DataLoader in line {lines} does not pin its batches"
            yield match(call, message, advice=ADVICE, confidence="medium", hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Copies from pageable memory that the source asked not to wait."""
    report = case.trace
    for found in copied(case, "H2D", "pageable"):
        assert report is not None
        if found.call is None or found.module is None or not is_non_blocking(found.module, found.call):
            continue
        share = found.kind.exposed_ns / report.span_ns
        if share < case.limit(RULE, "min_share"):
            continue
        text = found.module.source(found.call)
        amount = format_bytes(found.kind.total_bytes / case.num_traced_steps)
        yield RULE.finding(
            message=(
                f"`{text}`{spoken(found.place)} copies {amount}{case.per_step} from pageable memory, and so waits for "
                f"{format_percent(share)} of the time, non_blocking or not"
            ),
            where=found.place,
            evidence={"exposed_share": share, "gb_per_s": found.kind.gb_per_s},
            links=[f"/trace/copies/kinds/{found.row}"],
            cost=copy_cost(case, share, "copies from pageable memory beside no kernel"),
            gain=copy_gain(case, share, "H2D", found.kind),
            confidence="high",
            advice=ADVICE,
            rewrite=loader_rewrite(case, "pin_memory=True"),
            resource="copy:H2D",
        )


def _passes_on(call: ast.Call) -> bool:
    """Whether a loader takes settings from elsewhere, which may pin."""
    return any(keyword.arg is None for keyword in call.keywords)
