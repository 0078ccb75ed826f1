"""A tensor is created on the host and then moved to the device.

## What it does
Finds `torch.zeros(n).to(device)`, `torch.ones(n).cuda()` and the like in code that runs once per step.

## Why it costs
The host fills the memory and copies it over; from pageable memory, so that the host waits for the copy. With `device=` one
small kernel fills it where it is needed, and nothing is copied.

## Example
```python
import torch


class Attention(torch.nn.Module):
    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).to(x.device)
        return self.attend(x, mask)
```

## Use instead
```python
import torch


class Attention(torch.nn.Module):
    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device)
        return self.attend(x, mask)
```

## Fix safety
The fix is applied to `zeros`, `ones`, `empty`, `full`, `eye` and integer `arange` without options that a move would treat
otherwise: the values are the same. Random numbers would come from the device's generator and be others, so that `rand` and
its kin are only reported.

## References
- PyTorch, Performance Tuning Guide, "Create tensors directly on the target device": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, Tensor Creation Ops: https://docs.pytorch.org/docs/stable/torch.html#creation-ops
"""

from __future__ import annotations

import ast
import re

from pyrometer.rules.host.patterns.reads import goes_to_cpu, hot_place
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Module, declare
from pyrometer.source.edit import Edit

RULE = declare(code="PYR117", about_devices=True, severity="warning", fix_class="exact")

SAME_EVERYWHERE = ("zeros", "ones", "empty", "full", "eye")
ROUNDED = ("arange", "linspace", "logspace", "tril_indices", "triu_indices")
"""Calculated, so that another device may round the last digit otherwise, unless they are integers."""
RANDOM = ("rand", "randn", "randint", "randperm", "normal", "bernoulli")
FACTORIES = tuple(f"torch.{name}" for name in (*SAME_EVERYWHERE, *ROUNDED, *RANDOM))
BLOCKING = frozenset({"device", "out", "requires_grad", "pin_memory", "generator"})
"""Options that the rewritten call would treat otherwise."""

DEVICE_NAME = re.compile(r"(^|_)(device|dev)$")


@RULE.in_source
def find(module: Module) -> Matches:
    """Factories whose result is moved at once, in hot code."""
    for factory in module.calls(*FACTORIES):
        move = _move(module, factory)
        target = _target(module, move) if move is not None else None
        if (
            move is None
            or target is None
            or any(keyword.arg in BLOCKING or keyword.arg is None for keyword in factory.keywords)
        ):
            continue
        why = hot_place(module, move)
        if why is None or goes_to_cpu(module, move):
            continue
        name = (module.name_of(factory.func) or "").rpartition(".")[2]
        rewritten = _rewritten(module, factory, target)
        fix = _fix(module, factory, move, target) if _is_same(module, factory, name) else None
        other = (
            " Its numbers will be others: the device has a generator of its own." if name in RANDOM else ""
        )
        yield match(
            move,
            f"`torch.{name}` creates the tensor on the host and `{_last(module, factory, move)}` copies it to the device",
            advice=f"Create it where it is needed: `{rewritten}`.{other}",
            fix=fix,
            hot=why.why,
        )


def _move(module: Module, factory: ast.Call) -> ast.Call | None:
    """The call of `.to` or `.cuda` right on the result."""
    attribute = module.parent(factory)
    call = module.parent(attribute) if isinstance(attribute, ast.Attribute) else None
    if (
        not isinstance(attribute, ast.Attribute)
        or not isinstance(call, ast.Call)
        or call.func is not attribute
    ):
        return None
    return call if attribute.attr in {"to", "cuda"} else None


def _target(module: Module, move: ast.Call) -> str | None:
    """The text of the device; None where it may be something else, or more is changed than the device."""
    assert isinstance(move.func, ast.Attribute)
    options = {keyword.arg: keyword.value for keyword in move.keywords if keyword.arg != "non_blocking"}
    if move.func.attr == "cuda":
        return '"cuda"' if not move.args and not options else None
    given = [*move.args, *([options.pop("device")] if "device" in options else [])]
    if len(given) != 1 or options or not is_device(module, given[0]):
        return None
    return module.source(given[0])


def is_device(module: Module, node: ast.expr) -> bool:
    """Whether an expression certainly is a device, and not a dtype or another tensor."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Call):
        return module.name_of(node.func) == "torch.device"
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return DEVICE_NAME.search(name) is not None


def _is_same(module: Module, factory: ast.Call, name: str) -> bool:
    """Whether the values do not depend on the device."""
    if name in SAME_EVERYWHERE:
        return True
    is_counted = name == "arange" and bool(factory.args) and not factory.keywords
    return is_counted and all(isinstance(_number(module, arg), int) for arg in factory.args)


def _number(module: Module, node: ast.expr) -> object:
    """A literal number, 0 for a size; None for anything that could be a fraction."""
    is_size = (
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in {"size", "len"}
    ) or (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "shape"
    )
    return 0 if is_size else module.literal(node)


def _fix(module: Module, factory: ast.Call, move: ast.Call, target: str) -> Fix | None:
    """Put the device into the factory's call, and take the move away."""
    line, column, end_line, end_column = module.span(move)
    text = module.source(move)
    if "#" in text or "\n" in target:
        return None  # a comment may stand where the device goes
    edit = Edit(
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        text=_rewritten(module, factory, target),
    )
    return Fix(fix_class="exact", title=f"Create it with device={target}", edits=[edit])


def _rewritten(module: Module, factory: ast.Call, target: str) -> str:
    text = module.source(factory)
    before = text[:-1].rstrip()
    separator = "" if before.endswith("(") else " " if before.endswith(",") else ", "
    return f"{before}{separator}device={target})"


def _last(module: Module, factory: ast.Call, move: ast.Call) -> str:
    text = module.source(move)
    return text[len(module.source(factory)) :] if text.startswith(module.source(factory)) else ".to(…)"
