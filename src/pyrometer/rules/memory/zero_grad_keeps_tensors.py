"""Gradients are filled with zeros instead of being freed.

## What it does
Finds `zero_grad(set_to_none=False)`. From the memory profile of a program with its own loop it finds gradients of one
step that are still held in the forward pass of the next, where letting them go was rehearsed to lower the peak.

## Why it costs
All gradients stay allocated beside the activations of the next forward pass, each step writes zeros into all of them and
the backward pass adds to these instead of writing.

## Example
```python
import torch

for x, y in loader:
    optimizer.zero_grad(set_to_none=False)
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## Use instead
```python
import torch

for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## Fix safety
Exact only where it is certain from the file: plain SGD without momentum and weight decay, and nobody reads gradients. In
general it is semantic: `p.grad` is None in between, and optimizers skip parameters without a gradient, to which momentum
and weight decay would have been applied with a gradient of zero.

## References
- PyTorch documentation, torch.optim.Optimizer.zero_grad:
  https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
- PyTorch tutorial, Performance Tuning Guide: https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast

from pyrometer.advice import FixClass
from pyrometer.quantity import format_bytes
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.memory.patterns.peak import of_advice
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import replace

RULE = declare(code="PYR212", severity="warning", fix_class="semantic", lever="set_to_none")

READS_GRADIENTS = frozenset(
    ["grad", "register_hook", "register_post_accumulate_grad_hook", "unscale_", "no_sync"]
)
CLIPPING = (
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.get_total_norm",
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Calls that keep the gradients."""
    if not module.imports_torch:
        return
    for call in module.method_calls("zero_grad"):
        keyword = module.keyword(call, "set_to_none")
        given = keyword if keyword is not None else call.args[0] if call.args else None
        if given is None or module.literal(given) is not False or module.region(call).test:
            continue
        assert isinstance(call.func, ast.Attribute)
        owner = module.source(call.func.value)
        legal = _is_exact(module, call.func.value)
        edits = [replace(module, call, f"{owner}.zero_grad()")]
        why = "" if legal == "exact" else " Check first that nobody counts on gradients of zero."
        yield match(
            call,
            f"`{owner}` keeps all gradients and fills them with zeros",
            advice=f"Let them go: `{owner}.zero_grad()`.{why}",
            fix=Fix(fix_class=legal, title=f"Use {owner}.zero_grad()", edits=edits),
        )


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Gradients that live on into the next forward pass."""
    assert case.memory is not None
    for given in given_advice(case.memory, "/memory", "zero-grad-to-none"):
        yield of_advice(
            RULE,
            case,
            given,
            "with gradients let go",
            message=f"Gradients of one step are held through the forward pass of the next: "
            f"{format_bytes(given.advice.saves_bytes)} of the peak of {format_bytes(case.memory.peak_bytes)}",
            links=[given.link, "/memory/ledger_bytes/gradients"],
            confidence="high",
            resource="peak:gradients",
        )


def _is_exact(module: Module, owner: ast.expr) -> FixClass:
    """Exact where the owner is a plain SGD that this file makes, and the file never looks at a gradient."""
    if any(node.attr in READS_GRADIENTS for node in module.nodes(ast.Attribute)) or any(
        module.calls(*CLIPPING)
    ):
        return "semantic"
    assignments = module.assignments(owner.id, owner) if isinstance(owner, ast.Name) else ()
    plain = [
        isinstance(value, ast.Call)
        and module.name_of(value.func) in ("torch.optim.SGD", "torch.optim.sgd.SGD")
        and len(value.args) <= 2
        and all(keyword.arg in ("params", "lr", "foreach", "fused", "maximize") for keyword in value.keywords)
        for value in assignments
    ]
    return "exact" if plain and all(plain) else "semantic"
