"""A result gets new memory although an operand that nothing reads again could hold it.

## What it does
Carries the rehearsed advice of the memory profile: operators of which nothing reads the operand again and nothing was
saved for a backward pass. In source text it speaks only where that is provable: in hot code without gradients, an
activation or a rounding of a value that was computed right within the call.

## Why it costs
Two buffers are alive at once where one would do, and the second must be fetched. On two CPU cores a ReLU of 4 MiB took
0.13 ms, and in place 0.06 ms.

## Example
```python
import torch
from torch.nn import functional as F


@torch.no_grad()
def run(loader, weight: torch.Tensor):
    outputs = []
    for x in loader:
        outputs.append(F.relu(torch.mm(x, weight)))
    return outputs
```

## Use instead
```python
import torch
from torch.nn import functional as F


@torch.no_grad()
def run(loader, weight: torch.Tensor):
    outputs = []
    for x in loader:
        outputs.append(F.relu(torch.mm(x, weight), inplace=True))
    return outputs
```

## Fix safety
Exact: the same values. Where gradients are recorded, autograd raises an error if a saved value would be overwritten.

## References
- PyTorch notes, Autograd mechanics, "In-place operations with autograd":
  https://pytorch.org/docs/stable/notes/autograd.html
- PyTorch documentation, torch.nn.functional.relu:
  https://pytorch.org/docs/stable/generated/torch.nn.functional.relu.html
"""

from __future__ import annotations

import ast

from pyrometer.quantity import format_bytes
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.memory.patterns.peak import MIN_PEAK, is_large, is_short, of_advice
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.source.edit import replace

RULE = declare(
    code="PYR214",
    severity="info",
    fix_class="exact",
    limits=(
        MIN_PEAK,
        Limit("min_saving", 0.1, "a tenth of the peak does not decide whether a batch or a model fits"),
        Limit("short_share", 0.8, "beyond it a longer input or a neighbour ends in an out-of-memory error"),
    ),
)

SWITCHED = frozenset(
    f"torch.nn.functional.{name}"
    for name in (
        "relu",
        "leaky_relu",
        "elu",
        "hardtanh",
        "relu6",
        "hardswish",
        "hardsigmoid",
        "silu",
        "mish",
        "celu",
        "selu",
    )
)
"""Functions with a switch `inplace`."""

FRESH = (ast.MatMult,)
"""Operations whose result is new in every case; a sum may be done by a type that is no tensor."""

FRESH_CALLS = frozenset(
    ["torch.matmul", "torch.mm", "torch.bmm", "torch.addmm", "torch.nn.functional.linear"]
    + [f"torch.nn.functional.conv{n}d" for n in (1, 2, 3)]
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Activations of values that are computed within the call itself, where no gradients are recorded."""
    for call in module.calls(*SWITCHED):
        region = module.region(call)
        if not (region.no_grad or region.inference_mode) or region.compiled or region.scripted or region.test:
            continue
        hot = module.hot(call)
        if (
            hot is None
            or len(call.args) != 1
            or module.keyword(call, "inplace") is not None
            or not _is_fresh(module, call.args[0])
        ):
            continue
        text = module.source(call)
        edits = [replace(module, call, f"{text[:-1].rstrip().removesuffix(',')}, inplace=True)")]
        yield match(
            call,
            f"`{text}` takes a second buffer beside one that nothing reads again{hot.during}",
            advice=f"Write the result where its operand is: `{edits[0].text}`.",
            fix=Fix(fix_class="exact", title="Pass inplace=True", edits=edits),
            hot=hot.why,
        )


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Results that stand beside dead operands when memory is at its peak."""
    memory = case.memory
    assert memory is not None
    if not is_large(case, RULE):
        return
    short = is_short(case, case.limit(RULE, "short_share"))
    for given in given_advice(case.memory, "/memory", "in-place"):
        if given.advice.saves_bytes < case.limit(RULE, "min_saving") * memory.peak_bytes:
            continue
        yield of_advice(
            RULE,
            case,
            given,
            "in place",
            severity="warning" if short else RULE.severity,
            message=f"Results get new memory beside operands that are not read again: {format_bytes(given.advice.saves_bytes)} of the peak of "
            f"{format_bytes(memory.peak_bytes)}",
            confidence="high",
            resource="peak:temporaries",
        )


def _is_fresh(module: Module, operand: ast.expr) -> bool:
    """Whether an operand is a new tensor without a name, of floating point as products of such are."""
    if not module.value_of(operand).is_tensor:
        return False
    if isinstance(operand, ast.BinOp):
        return isinstance(operand.op, FRESH)
    return (
        isinstance(operand, ast.Call)
        and module.name_of(operand.func) in FRESH_CALLS
        and module.keyword(operand, "out") is None
    )
