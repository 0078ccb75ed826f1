"""Reserved memory is read as if it were memory in use.

## What it does
Finds two readings of `torch.cuda.memory_reserved` (or of its maximum) of which one is
subtracted from or compared with the other, and `nvidia-smi` called to look for a leak.

## Why it costs
The allocator keeps what was freed for the next request. Reserved memory, and all that nvidia-smi shows, therefore stays when tensors die,
and grows when blocks do not fit: it says nothing about a leak. A true one can hide in a pool that is already large.

## Example
```python
import torch


def check(step) -> None:
    before = torch.cuda.memory_reserved()
    step()
    assert torch.cuda.memory_reserved() <= before
```

## Use instead
```python
import torch


def check(step) -> None:
    before = torch.cuda.memory_allocated()
    step()
    assert torch.cuda.memory_allocated() <= before
```

## Fix safety
Left to a person: the test then asks another question, and its limits have to be found anew.

## References
- PyTorch documentation, CUDA semantics, memory management: https://docs.pytorch.org/docs/stable/notes/cuda.html
- PyTorch documentation, Understanding CUDA memory usage: https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR008", severity="warning", fix_class="semantic")

RESERVED = (
    "torch.cuda.memory_reserved",
    "torch.cuda.max_memory_reserved",
    "torch.cuda.memory_cached",
    "torch.cuda.memory.memory_reserved",
    "torch.accelerator.memory_reserved",
    "torch.accelerator.max_memory_reserved",
    "torch.xpu.memory_reserved",
)
RUNNERS = (
    "subprocess.run",
    "subprocess.check_output",
    "subprocess.Popen",
    "subprocess.getoutput",
    "os.popen",
    "os.system",
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Differences and comparisons of two readings, and nvidia-smi in search of a leak."""
    readings = set(module.calls(*RESERVED))
    if readings:
        nodes: list[ast.BinOp | ast.Compare] = [*module.nodes(ast.BinOp), *module.nodes(ast.Compare)]
        for node in nodes:
            sides = _sides(node)
            if sides is not None and all(_is_reading(module, side, readings) for side in sides):
                yield match(
                    node,
                    "two readings of reserved memory are compared; the allocator keeps what was freed, so this shows no leak",
                    advice="Read torch.cuda.memory_allocated() instead: it counts live tensors only.",
                )
    for call in module.calls(*RUNNERS):
        function = module.function_of(call)
        if _asks_memory(call) and function is not None and "leak" in function.name.lower():
            yield match(
                call,
                "nvidia-smi shows what the allocator reserved, not what is in use, so this shows no leak",
                advice="Read torch.cuda.memory_allocated() in the process itself: it counts live tensors only.",
                confidence="medium",
            )


def _sides(node: ast.BinOp | ast.Compare) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Compare):
        return (node.left, node.comparators[0]) if len(node.comparators) == 1 else None
    return (node.left, node.right) if isinstance(node.op, ast.Sub) else None


def _is_reading(module: Module, side: ast.expr, readings: set[ast.Call]) -> bool:
    """Whether one side is a reading, or a name that is given only readings, perhaps with a margin or in another unit."""
    if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Add | ast.Mult | ast.Div | ast.FloorDiv):
        return _is_reading(module, side.left, readings)
    if isinstance(side, ast.Call):
        return side in readings
    if not isinstance(side, ast.Name):
        return False
    given = module.assignments(side.id, side)
    return bool(given) and all(
        not isinstance(node, ast.Name) and _is_reading(module, node, readings) for node in given
    )


def _asks_memory(call: ast.Call) -> bool:
    text = " ".join(
        node.value
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return "nvidia-smi" in text and "memory" in text
