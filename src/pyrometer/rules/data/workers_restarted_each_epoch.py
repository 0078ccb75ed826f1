"""Workers are restarted in every epoch.

## What it does
Finds a DataLoader with workers but without `persistent_workers` that is used in a loop over epochs, and carries the loader's own
advice, which weighs the start against the length of an epoch.

## Why it costs
At the start of every epoch each worker is created, imports what it needs, gets the dataset and fills its queue, while the training
waits; at the end it is taken down. Where processes are spawned, the dataset is pickled for each of them. Short epochs pay most.

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(model: torch.nn.Module, data: TensorDataset) -> None:
    loader = DataLoader(data, batch_size=10, num_workers=4)
    for epoch in range(100):
        for (x,) in loader:
            model(x).sum().backward()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(model: torch.nn.Module, data: TensorDataset) -> None:
    loader = DataLoader(data, batch_size=10, num_workers=4, persistent_workers=True)
    for epoch in range(100):
        for (x,) in loader:
            model(x).sum().backward()
```

## Fix safety
What the program changes in the dataset between epochs no longer reaches the workers, which keep their copy; and their random numbers go on
instead of starting from a new seed. So it is a semantic fix.

## References
- PyTorch documentation, torch.utils.data.DataLoader: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.data.patterns.loaders import (
    MISSING_ARGUMENT,
    LoaderCall,
    loader_calls,
    repeated_in_epochs,
)
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import replace

RULE = declare(code="PYR305", severity="info", fix_class="semantic", lever="persistent_workers")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to keep its workers."""
    yield from advised(RULE, case, "persistent-workers", severity="warning")


@RULE.in_source
def find(module: Module) -> Matches:
    """Loaders with workers that a loop over epochs starts again and again."""
    for call in loader_calls(module):
        number = call.value("num_workers")
        if not call.is_complete or not isinstance(number, int) or isinstance(number, bool) or number < 1:
            continue
        if call.value("persistent_workers") not in (MISSING_ARGUMENT, False):
            continue
        loop = repeated_in_epochs(call)
        if loop is None:
            continue
        yield match(
            call.call,
            f"its {number} workers are started anew in every round of the loop in line {loop.lineno}"
            if number > 1
            else f"its worker is started anew in every round of the loop in line {loop.lineno}",
            advice="Give it persistent_workers=True, unless the dataset is changed between epochs.",
            fix=_fix(module, call),
            confidence="medium",
        )


def _fix(module: Module, call: LoaderCall) -> Fix | None:
    given: ast.expr | None = call.argument("persistent_workers")
    edits = (
        [replace(module, given, "True")]
        if given is not None
        else call.with_keyword("persistent_workers=True")
    )
    return Fix(fix_class="semantic", title="Keep the workers between epochs", edits=edits) if edits else None
