"""There are more workers than the loading needs, or than the machine can run.

## What it does
Carries the loader's own advice to use fewer workers or none. In source text it finds `num_workers` set to all CPUs of the machine in
programs that run one process per device, each of which then starts as many.

## Why it costs
Every worker is a process with its own memory, prefetched batches and start time. Workers beyond the CPUs take them from each other and from
the training process. `os.cpu_count()` counts the machine's CPUs, not those that a container or a job may use.

## Example
```python
import os

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
data = list(range(1000))
loader = DataLoader(data, sampler=DistributedSampler(data), num_workers=os.cpu_count())
```

## Use instead
```python
import os

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
data = list(range(1000))
per_rank = len(os.sched_getaffinity(0)) // int(os.environ["LOCAL_WORLD_SIZE"])
loader = DataLoader(data, sampler=DistributedSampler(data), num_workers=per_rank)
```

## Fix safety
Left to a person: with another number of workers random numbers of samples come from other seeds.

## References
- PyTorch documentation, torch.utils.data: https://docs.pytorch.org/docs/stable/data.html
- Python documentation, os.cpu_count: https://docs.python.org/3/library/os.html#os.cpu_count
"""

from __future__ import annotations

import ast

from pyrometer.rules.data.patterns.loaders import loader_calls
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR303", severity="warning", fix_class="semantic", lever="num_workers")

ALL_CPUS = frozenset(
    {"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count"}
)
RANKS = (
    "torch.distributed.init_process_group",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.utils.data.DistributedSampler",
    "torch.utils.data.distributed.DistributedSampler",
)


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to use fewer workers; idle ones cost memory, not time."""
    yield from advised(RULE, case, "no-workers")
    yield from advised(RULE, case, "fewer-workers", severity="info", cost=None, confidence="high")


@RULE.in_source
def find(module: Module) -> Matches:
    """Loaders that start a worker per CPU of the machine in every rank."""
    if not any(True for _ in module.calls(*RANKS)):
        return
    for call in loader_calls(module):
        number = call.argument("num_workers")
        values = [number, *(module.assignments(number.id, number) if isinstance(number, ast.Name) else [])]
        if number is not None and any(_is_all_cpus(module, value) for value in values):
            yield match(
                number,
                "every rank starts a worker for each CPU of the machine, so that ranks take the CPUs from each other",
                advice="Divide the CPUs of this process, len(os.sched_getaffinity(0)), by the ranks of the machine.",
            )


def _is_all_cpus(module: Module, value: ast.expr | None) -> bool:
    """Whether a number is that of all CPUs, perhaps less a few, not divided by anything."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        return _is_all_cpus(module, value.left)
    if isinstance(value, ast.BoolOp):
        return _is_all_cpus(module, value.values[0])
    return isinstance(value, ast.Call) and module.name_of(value.func) in ALL_CPUS
