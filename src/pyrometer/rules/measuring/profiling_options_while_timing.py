"""Code is timed while the profiler records it in detail.

## What it does
Finds a profiler with `profile_memory`, `with_stack`, `record_shapes` or `with_flops` switched on around, or within, two readings of the clock.

## Why it costs
Every option adds work to every operator, and so most to the shortest. Measured one by one on a CPU thread with a transformer
of 4,100 events per step, the profiler alone made a step 1.25 times as long, and each of these options added 27 to 48 % to that.
A time that is read under the profiler is no time of the program.

## Example
```python
import time

import torch

model = torch.nn.Linear(64, 64).eval()
x = torch.randn(8, 64)
with torch.inference_mode():
    with torch.profiler.profile(with_stack=True, profile_memory=True) as prof:
        start = time.perf_counter()
        model(x)
        took = time.perf_counter() - start
```

## Use instead
```python
import time

import torch

model = torch.nn.Linear(64, 64).eval()
x = torch.randn(8, 64)
with torch.inference_mode():
    with torch.profiler.profile(with_stack=True, profile_memory=True) as prof:
        model(x)
    start = time.perf_counter()
    model(x)
    took = time.perf_counter() - start
```

## Fix safety
Left to a person: timing and profiling become two runs of the same code.

## References
- PyTorch documentation, torch.profiler: https://docs.pytorch.org/docs/stable/profiler.html
"""

from __future__ import annotations

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.profilers import ProfiledBlock, profiled_blocks
from pyrometer.rules.measuring.patterns.timed import timings
from pyrometer.rules.measuring.patterns.timed_work import work_of
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR005", severity="warning", fix_class="semantic")

OPTIONS = ("profile_memory", "with_stack", "record_shapes", "with_flops")


@RULE.in_source
def find(module: Module) -> Matches:
    """Profilers with costly options that share time with a measurement."""
    for block in profiled_blocks(module):
        on = [name for name in OPTIONS if _is_on(module, block, name)]
        if not on or not _is_timed(module, block):
            continue
        yield match(
            block.call,
            f"what is timed here runs under the profiler with {', '.join(on)}",
            advice="Time in a run without the profiler; the profile then says where that time goes.",
        )


def _is_on(module: Module, block: ProfiledBlock, name: str) -> bool:
    value = block.argument(name)
    return value is not None and module.literal(value) is True


def _is_timed(module: Module, block: ProfiledBlock) -> bool:
    """Whether two readings of the clock, with computing between them, are within the block or around it."""
    scope = module.function_of(block.block)
    for timing in timings(module):
        inside = block.block in module.ancestors(timing.start) and block.block in module.ancestors(
            timing.difference
        )
        around = timing.scope is scope and timing.holds(block.block)
        if inside or around:
            work = work_of(module, timing)
            if work.first is not None or work.trains or work.over_loader:
                return True
    return False
