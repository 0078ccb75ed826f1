"""Samples are decoded in the training process.

## What it does
Finds a DataLoader without workers in a training whose dataset opens or decodes files, and carries the loader's own
advice to use workers, where it was observed.

## Why it costs
Without workers, loading and computing take turns, so that their times add up. With workers batches are made while the step runs, on other
cores. Workers cost memory and time to start, so that in-memory datasets are often better off without.

## Example
```python
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Photos(Dataset):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return to_tensor(Image.open(self.paths[index]))


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]) -> None:
    loader = DataLoader(Photos(paths), batch_size=32, shuffle=True)
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
```

## Use instead
```python
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Photos(Dataset):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return to_tensor(Image.open(self.paths[index]))


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]) -> None:
    loader = DataLoader(Photos(paths), batch_size=32, shuffle=True, num_workers=4, persistent_workers=True)
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
```

## Fix safety
Left to a person: random numbers of samples come from other seeds, dataset and collate function must be picklable where processes are
spawned, and the script needs `if __name__ == "__main__"` there.

## References
- PyTorch documentation, torch.utils.data, single- and multi-process data loading: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.datasets import decoding_call
from pyrometer.rules.data.patterns.loaders import loader_calls, trains
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR302", severity="warning", fix_class="semantic", lever="num_workers")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to use workers, or more of them."""
    yield from advised(RULE, case, "more-workers")


@RULE.in_source
def find(module: Module) -> Matches:
    """Loaders without workers over datasets that decode."""
    if not trains(module):
        return
    for call in loader_calls(module):
        if not call.is_complete or call.has_workers is not False:
            continue
        decoding = decoding_call(module, call.argument("dataset"))
        if decoding is not None:
            yield match(
                call.call,
                f"this loader has no workers, so that training waits for {decoding} of every sample",
                advice="Give it num_workers=4 and persistent_workers=True to begin with; pyrometer.tune_loader finds the best number.",
                confidence="medium",
            )
