"""A single run is reported as the step time.

## What it does
Finds one call of a model between two readings of the clock, with no loop around or within, whose difference is printed or logged.

## Why it costs
Nothing runs slower, but the figure says little: single steps scatter, and the first ones are slow. On two CPU cores, 200 calls of a small
convolution took between 0.85 and 2.1 times their median. Without a spread nobody can tell a change from noise.

## Example
```python
import time

import torch

model = torch.nn.Linear(64, 64).eval()
x = torch.randn(8, 64)
with torch.inference_mode():
    model(x)
    start = time.perf_counter()
    model(x)
    print("took", time.perf_counter() - start)
```

## Use instead
```python
import statistics
import time

import torch

model = torch.nn.Linear(64, 64).eval()
x = torch.randn(8, 64)
with torch.inference_mode():
    times = []
    for _ in range(100):
        start = time.perf_counter()
        model(x)
        times.append(time.perf_counter() - start)
    print("median", statistics.median(times), "worst", max(times))
```

## Fix safety
Left to a person: how often to repeat depends on what the figure is for.

## References
- PyTorch documentation, torch.utils.benchmark: https://docs.pytorch.org/docs/stable/benchmark_utils.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.timed import Timing, loops_between, quoted, timings
from pyrometer.rules.measuring.patterns.timed_work import work_of
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR003", severity="info", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Differences around exactly one call of a model, shown to people."""
    for timing in timings(module):
        if _repeats(module, timing) or not quoted(module, timing):
            continue
        work = work_of(module, timing)
        if len(work.model_calls) != 1 or work.trains or work.over_loader:
            continue
        called = work.model_calls[0]
        yield match(
            timing.difference,
            f"one call of `{module.source(called.func)}` is quoted as its time",
            advice="Repeat it (torch.utils.benchmark.Timer(...).blocked_autorange(), or pyrometer bench), and quote the median "
            "with its interval.",
            confidence="medium",
        )


def _repeats(module: Module, timing: Timing) -> bool:
    """Whether a loop is around or within, or around a call of the function in this file, or the caller gets the figure."""
    if module.loops_around(timing.start) or loops_between(module, timing):
        return True
    function = timing.scope
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if module.hot(timing.start) is not None or module.class_of(function) is not None:
        return True
    return any(
        module.loops_around(call) or module.hot(call) is not None
        for call in module.nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id == function.name
    )
