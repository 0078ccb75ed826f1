"""Preprocessing that gives the same result is repeated in every epoch.

## What it does
Carries the advice of the sample profile, which fetches samples twice and compares. In source text it finds a training dataset whose
transforms are all deterministic, and whose loader a loop over epochs uses.

## Why it costs
Decoding, resizing and normalising the same sample again gives the same tensor. Kept in memory or on disk, it is made once instead of once per
epoch. It costs space: as much as all prepared samples together.

## Example
```python
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def train(model: torch.nn.Module) -> None:
    prepare = transforms.Compose([transforms.Resize(64), transforms.CenterCrop(64), transforms.ToTensor()])
    loader = DataLoader(datasets.ImageFolder("train", transform=prepare), shuffle=True)
    for epoch in range(10):
        for x, y in loader:
            model(x).sum().backward()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def train(model: torch.nn.Module) -> None:
    prepare = transforms.Compose([transforms.Resize(64), transforms.CenterCrop(64), transforms.ToTensor()])
    prepared = datasets.ImageFolder("train", transform=prepare)
    kept = [prepared[i] for i in range(len(prepared))]
    loader = DataLoader(kept, shuffle=True)
    for epoch in range(10):
        for x, y in loader:
            model(x).sum().backward()
```

## Fix safety
Left to a person: the samples are the same as long as nothing in them is random, and they must fit into memory or on disk.

## References
- PyTorch documentation, torch.utils.data: https://docs.pytorch.org/docs/stable/data.html
- torchvision documentation, transforms: https://docs.pytorch.org/vision/stable/transforms.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.data.patterns.datasets import creation_of, decoding_call
from pyrometer.rules.data.patterns.loaders import LoaderCall, loader_calls, repeated_in_epochs, trains
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR308", severity="info", fix_class="semantic")

DETERMINISTIC = frozenset(
    [
        "Resize",
        "CenterCrop",
        "ToTensor",
        "PILToTensor",
        "ToImage",
        "ToPureTensor",
        "Normalize",
        "Grayscale",
        "Pad",
        "ConvertImageDtype",
        "ToDtype",
    ]
)
"""Transforms of torchvision that give the same for the same image."""


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The advice to keep what came out the same whenever it was asked for."""
    yield from advised(RULE, case, "cache-repeated-work", severity="warning")


@RULE.in_source
def find(module: Module) -> Matches:
    """Shuffled loaders, used for many epochs, over files that are prepared in the same way each time."""
    if not trains(module):
        return
    for call in loader_calls(module):
        if call.value("shuffle") is not True or repeated_in_epochs(call) is None:
            continue
        names = _transforms(module, call)
        decoding = decoding_call(module, call.argument("dataset"))
        if names and set(names) <= DETERMINISTIC and decoding is not None:
            yield match(
                call.call,
                f"{decoding} and {', '.join(names)} give the same for a sample in every epoch, and are done anew in each",
                advice="If the prepared samples fit, keep them: [dataset[i] for i in range(len(dataset))], or an np.memmap that is filled "
                "once; random transforms come after that.",
                confidence="low",
            )


def _transforms(module: Module, call: LoaderCall) -> list[str]:
    """The names of the transforms that a dataset is given; empty where they are not all in sight."""
    creation = creation_of(module, call.argument("dataset"))
    given = module.keyword(creation, "transform") if creation is not None else None
    if isinstance(given, ast.Name):
        values = module.assignments(given.id, given)
        given = values[0] if len(values) == 1 else None
    if not isinstance(given, ast.Call) or not given.args or not isinstance(given.args[0], ast.List):
        return []
    names = [
        (module.name_of(element.func) or "") if isinstance(element, ast.Call) else ""
        for element in given.args[0].elts
    ]
    return [name.rpartition(".")[2] for name in names]
