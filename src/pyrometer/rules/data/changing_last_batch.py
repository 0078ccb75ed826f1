"""The last batch of an epoch has another size, in a program that is compiled.

## What it does
Finds a shuffled DataLoader with batches of several samples and without `drop_last`, in a training that is passed to torch.compile without
`dynamic=True`.

## Why it costs
The first smaller batch fails the guards on the shape, and the step is compiled once more, with a symbolic size from then on; with CUDA graphs
(`mode="reduce-overhead"`) each new shape is recorded on its own. What was compiled for the fixed size may be faster than what comes after.

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(model: torch.nn.Module, data: TensorDataset) -> None:
    fast = torch.compile(model)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    for (x,) in loader:
        fast(x).sum().backward()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(model: torch.nn.Module, data: TensorDataset) -> None:
    fast = torch.compile(model)
    loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    for (x,) in loader:
        fast(x).sum().backward()
```

## Fix safety
Up to `batch_size - 1` samples are left out of each epoch; with shuffling they are others each time. So it is a semantic fix, and none for evaluation.

## References
- PyTorch documentation, torch.compiler, dynamic shapes: https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- PyTorch documentation, torch.utils.data.DataLoader, drop_last: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.loaders import MISSING_ARGUMENT, LoaderCall, loader_calls, trains
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Module, declare
from pyrometer.source.edit import replace

RULE = declare(code="PYR311", severity="info", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Training loaders of compiled programs that keep a smaller last batch."""
    if not trains(module) or not _compiles_for_fixed_shapes(module):
        return
    for call in loader_calls(module):
        size = call.value("batch_size")
        if (
            not call.is_complete
            or size in (MISSING_ARGUMENT, None, 1)
            or call.argument("batch_sampler") is not None
        ):
            continue
        if call.value("shuffle") is not True or call.value("drop_last") not in (MISSING_ARGUMENT, False):
            continue
        yield match(
            call.call,
            "the last batch of an epoch may be smaller, and what torch.compile made is compiled once more for it",
            advice="Give it drop_last=True, or mark the batch dimension with torch._dynamo.mark_dynamic.",
            fix=_fix(module, call),
            confidence="medium",
        )


def _compiles_for_fixed_shapes(module: Module) -> bool:
    """Whether anything is compiled without being told that sizes change."""
    for call in module.calls("torch.compile"):
        dynamic = module.keyword(call, "dynamic")
        if dynamic is None or module.literal(dynamic) in (None, False):
            return True
    return False


def _fix(module: Module, call: LoaderCall) -> Fix | None:
    given = call.argument("drop_last")
    edits = [replace(module, given, "True")] if given is not None else call.with_keyword("drop_last=True")
    return Fix(fix_class="semantic", title="Leave the smaller last batch out", edits=edits) if edits else None
