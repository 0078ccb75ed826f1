"""The program sleeps while its clock runs.

## What it does
Finds `time.sleep` between two readings of the clock that also hold a call of a model, outside of any loop that waits for something.

## Why it costs
The sleep is counted as work. Where it stands in for a synchronisation the time is wrong either way: too long when the device was done
earlier, too short when it was not.

## Example
```python
import time

import torch

model = torch.nn.Linear(64, 64).cuda().eval()
x = torch.randn(8, 64, device="cuda")
with torch.inference_mode():
    start = time.perf_counter()
    y = model(x)
    time.sleep(0.1)
    took = time.perf_counter() - start
```

## Use instead
```python
import time

import torch

model = torch.nn.Linear(64, 64).cuda().eval()
x = torch.randn(8, 64, device="cuda")
with torch.inference_mode():
    start = time.perf_counter()
    y = model(x)
    torch.cuda.synchronize()
    took = time.perf_counter() - start
```

## Fix safety
Left to a person: what the sleep waits for is not in the text.

## References
- PyTorch documentation, CUDA semantics, asynchronous execution: https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.timed import calls_between, timings
from pyrometer.rules.measuring.patterns.timed_work import work_of
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR015", severity="warning", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Sleeps beside a model, between two readings."""
    if "sleep" not in module.text:
        return
    seen: set[ast.Call] = set()
    for timing in timings(module):
        work = work_of(module, timing)
        if work.first is None:
            continue
        for call in calls_between(module, timing):
            if module.name_of(call.func) != "time.sleep" or call in seen or _waits_for(module, call):
                continue
            seen.add(call)
            yield match(
                call,
                f"the sleep is part of the time that begins in line {timing.start.lineno}",
                advice="Take it out; to wait for a device call torch.cuda.synchronize() (torch.accelerator.synchronize()).",
            )


def _waits_for(module: Module, call: ast.Call) -> bool:
    """Whether the sleep is part of waiting for a condition."""
    return any(isinstance(above, ast.While | ast.If | ast.ExceptHandler) for above in module.ancestors(call))
