"""Tensors are part of a reference cycle, so they wait for the garbage collector to be freed.

## What it does
Finds two cycles in source text: a hook whose function reads the tensor that it hangs on, and a `torch.autograd.Function`
whose `forward` stores what it returns as an attribute of `ctx`. From a leak report it finds the cycles that kept tensors,
and those that wait for Python's garbage collector.

## Why it costs
Memory of a tensor is free as soon as the last name is gone, but a cycle waits until the collector runs, which counts
objects and knows nothing of gigabytes on a device. With the collector off the cycle never goes. On two CPU cores, a custom
function that stored its output of 100 floats on `ctx` left 800 B and two nodes of the graph with every step.

## Example
```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        y = 2 * x
        ctx.y = y
        return y
```

## Use instead
```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        y = 2 * x
        ctx.save_for_backward(y)
        return y
```

## Fix safety
Semantic: `backward` must read `ctx.saved_tensors` instead of the attribute, and a hook gets what it needs as an argument
or through `weakref`.

## References
- PyTorch documentation, torch.autograd.function.FunctionCtx.save_for_backward:
  https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html
- PyTorch notes, Extending PyTorch: https://pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.rules.match import Matches, match
from pyrometer.rules.memory.patterns.leaking import leak_finding, rate, sites
from pyrometer.rules.rule import Case, Findings, declare

if TYPE_CHECKING:
    from pyrometer.source.module import FunctionNode, Module

RULE = declare(code="PYR216", severity="warning", fix_class="semantic")

WAITING = re.compile(r"^reference cycles: (?P<size>.+?) per step wait for")


@RULE.in_source
def find(module: Module) -> Matches:
    """Cycles through a hook or through `ctx`."""
    if not module.imports_torch:
        return
    yield from _hooks(module)
    yield from _contexts(module)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Cycles that kept tensors in a watched run."""
    for number, site in sites(case, "cycle"):
        yield leak_finding(
            RULE,
            case,
            number,
            site,
            message=f"{rate(site)} stay in {site.holder}",
            advice="Break the cycle: save tensors with ctx.save_for_backward, or refer back through weakref.",
        )
    leak = case.memory.leak if case.memory is not None else None
    for number, note in enumerate(leak.notes if leak is not None else []):
        waiting = WAITING.match(note)
        if waiting is not None:
            yield RULE.finding(
                severity="info",
                message=f"Reference cycles: {waiting['size']} of tensors per step wait for Python's garbage collector",
                where=Place(),
                evidence={"bytes_per_step": waiting["size"]},
                links=[f"/memory/leak/notes/{number}"],
                confidence="high",
                advice="Break the cycles, for example with weakref; then the memory is free as soon as the step ends.",
                resource="leak:cycles",
            )


def _hooks(module: Module) -> Matches:
    """`x.register_hook(lambda grad: ... x ...)`."""
    for call in module.method_calls("register_hook"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        function = module.function_of(call)
        if (
            not isinstance(owner, ast.Name)
            or len(call.args) != 1
            or function is None
            or not module.value_of(owner).is_tensor
        ):
            continue
        hook = _function_given(call.args[0], function)
        if hook is not None and _reads(hook, owner.id):
            yield match(
                call,
                f"the hook of `{owner.id}` reads `{owner.id}` itself: the two keep each other alive",
                advice=f"Let the hook use its argument, or what it needs of `{owner.id}` (such as its shape) under another name.",
            )


def _function_given(given: ast.expr, around: FunctionNode) -> ast.Lambda | FunctionNode | None:
    if isinstance(given, ast.Lambda):
        return given
    if isinstance(given, ast.Name):
        inner = (
            node for node in ast.walk(around) if isinstance(node, ast.FunctionDef) and node is not around
        )
        return next((node for node in inner if node.name == given.id), None)
    return None


def _reads(hook: ast.Lambda | FunctionNode, name: str) -> bool:
    arguments = hook.args
    own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    body = [hook.body] if isinstance(hook, ast.Lambda) else hook.body
    names = [node for one in body for node in ast.walk(one) if isinstance(node, ast.Name) and node.id == name]
    return name not in own and bool(names) and all(isinstance(node.ctx, ast.Load) for node in names)


def _contexts(module: Module) -> Matches:
    """`ctx.y = y` where `forward` returns `y`."""
    for definition in module.nodes(ast.ClassDef):
        if not any(
            module.name_of(base) in ("torch.autograd.Function", "torch.autograd.function.Function")
            for base in definition.bases
        ):
            continue
        for forward in definition.body:
            if isinstance(forward, ast.FunctionDef) and forward.name == "forward" and forward.args.args:
                yield from _stored_results(module, forward)


def _stored_results(module: Module, forward: ast.FunctionDef) -> Matches:
    context = forward.args.args[0].arg
    arguments = {arg.arg for arg in forward.args.args}
    returned = {
        part.id
        for node in ast.walk(forward)
        if isinstance(node, ast.Return) and node.value is not None
        for part in (node.value.elts if isinstance(node.value, ast.Tuple) else [node.value])
        if isinstance(part, ast.Name)
    }
    for node in ast.walk(forward):
        if (
            not isinstance(node, ast.Assign)
            or not isinstance(node.value, ast.Name)
            or node.value.id not in returned - arguments
        ):
            continue
        if not module.value_of(node.value).is_tensor:
            continue
        for target in node.targets:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == context
            ):
                yield match(
                    node,
                    f"`{module.source(target)}` keeps the result of forward alive, whose graph keeps `{context}` alive",
                    advice=f"Use `{context}.save_for_backward({node.value.id})` and read `{context}.saved_tensors` in backward.",
                )
