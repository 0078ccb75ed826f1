"""The clock is read while the device is still working.

## What it does
Finds two readings of a host clock (`time.time`, `time.perf_counter`, …, or `timeit`) with work for a device between them, where nothing
before the second reading waits for the device. The readings may stand in a context manager of the same file, around what is
done in its `with` blocks. It speaks only in files that put something on a device, and not about
loops over a loader, whose length hides what is still queued at the end.

## Why it costs
Calls of kernels return as soon as they are queued. Without a synchronisation the difference is the time to queue the work, which can be
far below the time to do it, and the work of one region is charged to whoever waits next.

## Example
```python
import time

import torch

model = torch.nn.Linear(64, 64).cuda().eval()
x = torch.randn(8, 64, device="cuda")
with torch.inference_mode():
    start = time.perf_counter()
    for _ in range(100):
        y = model(x)
    print((time.perf_counter() - start) / 100)
```

## Use instead
```python
import time

import torch

model = torch.nn.Linear(64, 64).cuda().eval()
x = torch.randn(8, 64, device="cuda")
with torch.inference_mode():
    model(x)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(100):
        y = model(x)
    torch.cuda.synchronize()
    print((time.perf_counter() - start) / 100)
```

## Fix safety
Left to a person: a synchronisation changes no result, but it belongs into measuring code only, and its name depends on the device.

## References
- PyTorch documentation, CUDA semantics, asynchronous execution: https://docs.pytorch.org/docs/stable/notes/cuda.html
- PyTorch recipes, PyTorch Benchmark: https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html
"""

from __future__ import annotations

import ast
from itertools import chain, islice

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.timed import speaks_of_devices, timings
from pyrometer.rules.measuring.patterns.timed_work import Work, work_in_block, work_in_lambda, work_of
from pyrometer.rules.measuring.patterns.timers import timers
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR001", severity="warning", fix_class="semantic")

ADVICE = (
    "Call torch.cuda.synchronize() (torch.accelerator.synchronize() on any device) before each reading, or time with "
    "torch.utils.benchmark.Timer or device events, which do so."
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Second readings with nothing before them that waits."""
    if not module.imports_torch or not speaks_of_devices(module):
        return
    for timing in timings(module):
        yield from _unwaited(module, timing.reading, work_of(module, timing), "the clock is read")
    yield from _by_manager(module)
    yield from _by_timeit(module)


def _by_manager(module: Module) -> Matches:
    """At most one for each timer, whatever number of blocks it times."""
    for timer in timers(module):
        uses = (work_in_block(module, use) for use in timer.uses)
        found = (_unwaited(module, timer.reading, work, f"`{timer.name}` reads the clock") for work in uses)
        yield from islice(chain.from_iterable(found), 1)


def _unwaited(module: Module, reading: ast.Call, work: Work, what: str) -> Matches:
    """A second reading, if devices may still do what it times."""
    if work.first is None or work.waits or work.unclear or work.over_loader:
        return
    yield match(
        reading,
        f"{what} without waiting for the device, which may not yet have done `{module.source(work.first)}` "
        f"(line {work.first.lineno})",
        advice=ADVICE,
        confidence="high" if work.model_calls else "medium",
    )


def _by_timeit(module: Module) -> Matches:
    for call in module.calls("timeit.timeit", "timeit.repeat", "timeit.Timer"):
        given = call.args[0] if call.args else module.keyword(call, "stmt")
        if not isinstance(given, ast.Lambda):
            continue
        work = work_in_lambda(module, given)
        if work.first is not None and not work.waits and not work.unclear:
            yield match(
                call,
                f"timeit does not wait for the device, which may not yet have done `{module.source(given.body)}`",
                advice=ADVICE,
            )
