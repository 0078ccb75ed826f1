"""The first calls of a model are timed as if they were steady state.

## What it does
Finds a model that is made or compiled, and whose first call stands between two readings of the clock, with none before them in the same
function. Times of training and of loops over a loader are left alone: there the first steps belong to the whole.

## Why it costs
The first call pays for what later ones do not: compilation, choosing of algorithms, loading of libraries and kernels, growth of the
memory pool. With torch.compile the first call of a small multilayer perceptron took 12 s on two CPU cores that others used as
well, and a later one 0.1 ms.

## Example
```python
import time

import torch

model = torch.compile(torch.nn.Linear(64, 64).eval())
x = torch.randn(8, 64)
with torch.inference_mode():
    start = time.perf_counter()
    for _ in range(100):
        model(x)
    print((time.perf_counter() - start) / 100)
```

## Use instead
```python
import time

import torch

model = torch.compile(torch.nn.Linear(64, 64).eval())
x = torch.randn(8, 64)
with torch.inference_mode():
    for _ in range(10):
        model(x)
    start = time.perf_counter()
    for _ in range(100):
        model(x)
    print((time.perf_counter() - start) / 100)
```

## Fix safety
Left to a person: calls before the timing change no result of a pure model, but they advance random numbers and running statistics.

## References
- PyTorch recipes, PyTorch Benchmark: https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html
- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.models import is_compiled, made_here
from pyrometer.rules.measuring.patterns.timed import Timing, quoted, timings
from pyrometer.rules.measuring.patterns.timed_work import Work, work_of
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR002", severity="warning", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Regions that hold the first call of a model that was made in the same function."""
    for timing in timings(module):
        work = work_of(module, timing)
        if work.trains or work.over_loader:
            continue
        name = _first_called(module, timing, work)
        if name is None or _runs_before(module, timing, name):
            continue
        compiled = is_compiled(module, name, timing.start)
        if not compiled and not quoted(module, timing):
            continue
        what = "compilation" if compiled else "the warm-up of its first call"
        yield match(
            timing.start,
            f"the timing includes {what}: `{name}` is not called before the clock starts",
            advice=f"Call `{name}` a few times with the same shapes before this line, "
            "until the times no longer fall; pyrometer bench tells that point by itself.",
            confidence="high" if compiled else "medium",
        )


def _first_called(module: Module, timing: Timing, work: Work) -> str | None:
    for call in work.model_calls:
        if (
            isinstance(call.func, ast.Name)
            and timing.holds(call)
            and made_here(module, call.func.id, timing.start)
        ):
            return call.func.id
    return None


def _runs_before(module: Module, timing: Timing, name: str) -> bool:
    """Whether the model may have run before: it was called, or given to a function that may call it."""
    loops = module.loops_around(timing.start)
    for use in module.uses(name, timing.start):
        earlier = (use.lineno, use.col_offset) < (timing.start.lineno, timing.start.col_offset)
        parent = module.parent(use)
        if not earlier or not isinstance(parent, ast.Call):
            continue
        callee = module.name_of(parent.func) or ""
        if not callee.startswith(("torch.compile", "torch.jit.", "torch.nn.")) or parent.func is use:
            return True
    # In a loop that makes no model of its own, all but the first round are warm.
    return any(not made_here(module, name, timing.start, inside=loop) for loop in loops)
