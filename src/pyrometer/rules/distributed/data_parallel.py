"""The model is wrapped in DataParallel.

## What it does
Finds `torch.nn.DataParallel`, in source text and around the model of a program.

## Why it costs
One process drives all devices by threads that share one interpreter lock. In each step the model is copied to every device, the batch is
scattered from the first device and outputs are gathered on it, and gradients are summed there: the first device does more than the
others, and its memory is full first.

## Example
```python
import torch

model = torch.nn.DataParallel(model).cuda()
```

## Use instead
One process per device, started by `torchrun`.
```python
import os

import torch
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = DistributedDataParallel(model.to(rank), device_ids=[rank], gradient_as_bucket_view=True)
```

## Fix safety
No fix is applied: the program must be started in another way, and each process needs its part of the data.

## References
- PyTorch, torch.nn.DataParallel, warning at its top: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
- PyTorch, CUDA semantics, "Use nn.parallel.DistributedDataParallel instead of multiprocessing or nn.DataParallel": https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

import ast

from pyrometer.place import Place
from pyrometer.rules.distributed.patterns.wrapping import DATA_PARALLEL
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR612", severity="warning", fix_class="semantic")

ADVICE = "Run one process per device under `torchrun`, and wrap the model in DistributedDataParallel."


@RULE.in_source
def find(module: Module) -> Matches:
    """Calls that make a DataParallel."""
    if "DistributedDataParallel" in module.text:
        return  # It is the choice of whoever starts the program.
    for call in module.calls(*DATA_PARALLEL):
        if not module.region(call).test and not (
            module.is_rare(call) or _is_wrapped_already(module, call) or _is_loaded(module, call)
        ):
            yield match(
                call,
                "DataParallel copies the model to every device in each step, from one process",
                advice=ADVICE,
            )


def _is_wrapped_already(module: Module, call: ast.Call) -> bool:
    """Whether a part is wrapped because the whole is: where that was done is the place to change."""
    tests = [above.test for above in module.ancestors(call) if isinstance(above, ast.If)]
    return any(
        "isinstance" in module.source(test) and "DataParallel" in module.source(test) for test in tests
    )


def _is_loaded(module: Module, call: ast.Call) -> bool:
    """Whether a model that is only run is wrapped, so that its parameters have the names of a checkpoint."""
    if module.heat.loops.in_training_file():
        return False
    function = module.function_of(call)
    methods = (node.attr for node in ast.walk(function or module.tree) if isinstance(node, ast.Attribute))
    return not {"load_state_dict", "eval"}.isdisjoint(methods)


@RULE.in_evidence("program")
def explain(case: Case) -> Findings:
    """A DataParallel in a program."""
    for index, wrapper in enumerate(case.program.wrappers if case.program is not None else []):
        if wrapper.type_name == "DataParallel":
            yield RULE.finding(
                message="the model is wrapped in DataParallel, which copies it to every device in each step, from one process",
                where=Place(module=wrapper.path),
                links=[f"/program/wrappers/{index}"],
                confidence="high",
                advice=ADVICE,
                sketch="DistributedDataParallel(model, device_ids=[rank])",
            )
