"""Outputs of a whole pass over the data are collected on the device.

## What it does
Finds loops over a loader that append a model's whole outputs to a list while these lie on an accelerator. Reduced results
(an argmax, a mean, a count) are small and not spoken of, nor are outputs that are moved to the host before.

## Why it costs
The list grows with the data set, not with the batch, and it shares the device with the model: an evaluation that fits with
ten batches runs out of memory with ten thousand.

## Example
```python
import torch


@torch.no_grad()
def predict(model, loader):
    model = model.cuda()
    outputs = []
    for x in loader:
        outputs.append(model(x.cuda()))
    return torch.cat(outputs)
```

## Use instead
```python
import torch


@torch.no_grad()
def predict(model, loader):
    model = model.cuda()
    outputs = []
    for x in loader:
        outputs.append(model(x.cuda()).cpu())
    return torch.cat(outputs)
```

## Fix safety
Semantic: the same values on another device, and each `cpu()` waits for the batch; where the device has room for all
outputs, collecting there is faster.

## References
- PyTorch FAQ, "My model reports cuda runtime error(2): out of memory": https://pytorch.org/docs/stable/notes/faq.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.memory.patterns.accumulating import additions, is_trimmed
from pyrometer.rules.rule import Module, declare
from pyrometer.source.value import Kind

RULE = declare(code="PYR204", severity="warning", fix_class="semantic")

MOVED = frozenset(["cpu", "numpy", "tolist", "item"])
SMALLER = frozenset(
    [
        "argmax",
        "argmin",
        "sum",
        "mean",
        "max",
        "min",
        "eq",
        "topk",
        "norm",
        "any",
        "all",
        "count_nonzero",
        "std",
        "var",
    ]
)
"""Methods whose result is small beside what they read."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Whole outputs on an accelerator that a loop over a loader collects."""
    if not module.imports_torch:
        return
    for addition in additions(module):
        loop = addition.loop
        if (
            addition.how != "append"
            or not addition.is_local
            or not isinstance(loop, ast.For)
            or _counts(module, loop)
        ):
            continue
        outputs = [part for part in addition.parts if _is_whole_output(module, part)]
        if not outputs or is_trimmed(module, addition):
            continue
        text = module.source(outputs[0])
        yield match(
            addition.node,
            f"`{text}` of every batch stays on the device in `{module.source(addition.target)}`{addition.hot.during}",
            advice=f"Move each output to the host: `{text}.cpu()`; or reduce it to what is needed of it.",
            confidence="medium",
            hot=addition.hot.why,
        )


def _counts(module: Module, loop: ast.For) -> bool:
    """Whether a loop goes over numbers, as one that generates token after token does."""
    return any(
        isinstance(node, ast.Call)
        and (module.name_of(node.func) or "").rpartition(".")[2] in ("range", "trange", "count")
        for node in ast.walk(loop.iter)
    )


def _is_whole_output(module: Module, part: ast.expr) -> bool:
    """Whether it is a model's output on an accelerator, without a graph: with one, the graph is the larger fault."""
    value = module.value_of(part)
    if not value.is_tensor or value.graph or value.device == "cpu":
        return False
    inner: ast.expr = part
    if isinstance(part, ast.Name):
        assigned = module.assignments(part.id, part)
        if len(assigned) != 1:
            return False
        inner = assigned[0]
    calls = [node for node in ast.walk(inner) if isinstance(node, ast.Call)]
    if any(isinstance(call.func, ast.Attribute) and call.func.attr in MOVED | SMALLER for call in calls):
        return False
    models = [call for call in calls if module.value_of(call.func).kind is Kind.MODULE]
    given = [argument for call in models for argument in call.args]
    return bool(models) and "accelerator" in {
        value.device,
        *(module.value_of(argument).device for argument in given),
    }
