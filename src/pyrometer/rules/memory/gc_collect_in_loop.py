"""Python's garbage collector is run by hand in every step.

## What it does
Finds `gc.collect()` in hot loops, and in a trace the time that the calls take. Collecting every few hundred steps, or of
the youngest generation only, is not spoken of.

## Why it costs
A full collection looks at every container object of the process, and a process with torch imported has hundreds of
thousands. On two CPU cores one call took 120 ms with nothing but torch imported. Tensors without reference cycles are
freed at once without it.

## Example
```python
import gc

import torch

for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
```

## Use instead
```python
import gc

import torch

gc.freeze()
for step, (x, y) in enumerate(loader):
    loss_fn(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 1000 == 0:
        gc.collect()
```

## Fix safety
Semantic, though results stay the same: where reference cycles hold tensors, these then wait for the collector's own
runs. Break the cycles instead.

## References
- Python documentation, gc.collect: https://docs.python.org/3/library/gc.html#gc.collect
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.match import Matches
from pyrometer.rules.memory.patterns import removable
from pyrometer.rules.rule import Case, Findings, Module, declare

if TYPE_CHECKING:
    import ast

RULE = declare(code="PYR206", severity="warning", fix_class="semantic", limits=(removable.MIN_SHARE,))

TOLD = removable.Told(
    does="looks at every Python object of the process",
    advice="Delete the call, or collect once every thousand steps; tensors without reference cycles are freed without it.",
)


def _calls(module: Module) -> Iterator[ast.Call]:
    """Full collections: those of a young generation are cheap."""
    for call in module.calls("gc.collect"):
        generation = call.args[0] if call.args else module.keyword(call, "generation")
        if generation is None or module.literal(generation) == 2:
            yield call


@RULE.in_source
def find(module: Module) -> Matches:
    """Collections in every step of a file that works with torch."""
    if module.imports_torch:
        yield from removable.matches(module, _calls, TOLD)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Collections with the time that they take."""
    yield from removable.findings(RULE, case, r"^<built-in function collect>$", _calls, TOLD)
