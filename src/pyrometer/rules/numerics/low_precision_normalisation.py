"""A loss or a normalisation is computed in half precision.

## What it does
Watches the dtypes that losses, batch statistics and normalisations written by hand are computed in, and finds in source text
losses, softmax and squares whose argument has just been cast to float16 or bfloat16. torch's own normalisations and softmax
compute in float32 within and only round their result, so that they are not reported.

## Why it costs
bfloat16 keeps 8 bits: a loss of 10.3 becomes 10.3125, the number below it is 10.25, and running statistics stop moving once an
update is smaller than such a gap. In float16 the square of 256 is infinite, and so is a summed loss above 65504. A loss or a
norm is a small part of a step, so that half precision gains next to nothing there.

## Example
```python
import torch


def rms_norm(x, weight):
    h = x.half()
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
```

## Use instead
```python
import torch


def rms_norm(x, weight):
    h = x.float()
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
    return h.to(x.dtype) * weight
```

## Fix safety
No fix is applied: results change in the last digits of half precision, for the better.

## References
- PyTorch, Automatic Mixed Precision, "CUDA Ops that can autocast to float32": https://docs.pytorch.org/docs/stable/amp.html
- NVIDIA, Train With Mixed Precision: https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.finding import Finding
from pyrometer.rules.match import Matches, match
from pyrometer.rules.numerics.patterns.half import low_dtype, low_value
from pyrometer.rules.numerics.patterns.origins import spoken
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.index import last_name
from pyrometer.source.value import Kind

if TYPE_CHECKING:
    from pyrometer.numerics.report import PrecisionUse

RULE = declare(code="PYR706", severity="warning", fix_class="tolerance")

FUNCTIONAL = "torch.nn.functional."
LOSSES = tuple(
    FUNCTIONAL + name
    for name in (
        "cross_entropy",
        "nll_loss",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "kl_div",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "ctc_loss",
    )
)
SOFTMAXES = (
    "torch.softmax",
    "torch.log_softmax",
    "torch.logsumexp",
    FUNCTIONAL + "softmax",
    FUNCTIONAL + "log_softmax",
)
SPEAKS_OF_LOSS = re.compile(r"loss|criterion|objective", re.IGNORECASE)
CRITERION = re.compile(r"(^|_)(criterion|loss_fn|loss_func|loss_function)$")

WORDS = {
    "loss": "a loss is computed in {dtype}",
    "statistics": "running statistics are kept in {dtype}",
    "hand-written normalisation": "a normalisation written by hand squares and sums in {dtype}",
}
"""Kinds that are reported; what is left out computes in float32 within."""

CURES = {
    "loss": "Cast the model's output to float32 before the loss: `criterion(output.float(), target)`.",
    "statistics": "Keep the normalisation's parameters and buffers in float32: `norm.float()`, and cast around it, or use autocast.",
    "hand-written normalisation": "Cast to float32 first and back after, or use `F.rms_norm` and `F.layer_norm`, which do so within.",
}


@RULE.in_source
def find(module: Module) -> Matches:
    """Losses, softmax and squares of values that have just been cast to half precision."""
    if not module.imports_torch or not ("half" in module.text or "float16" in module.text):
        return
    for node, dtype, kind in _computed_low(module):
        region = module.region(node)
        if not (region.test or region.scripted):
            advice = CURES.get(
                kind, "Leave out the cast, or cast after it: it is computed in float32 at the same price."
            )
            yield match(node, f"a {kind} is computed from values cast to {dtype}", advice=advice)


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """What the watched steps computed in half precision."""
    uses = case.numerics.precision if case.numerics is not None else []
    for index, use in enumerate(uses):
        if use.kind in WORDS:
            yield _finding(case, index, use)


def _finding(case: Case, index: int, use: PrecisionUse) -> Finding:
    overflows = use.dtype == "float16"
    return RULE.finding(
        message=f"{WORDS[use.kind].format(dtype=use.dtype)} in {spoken(use.where)}",
        where=place_of(case, use.where),
        evidence={"kind": use.kind, "dtype": use.dtype, "calls_per_step": use.calls},
        links=[f"/numerics/precision/{index}"],
        confidence="high" if overflows or use.kind != "hand-written normalisation" else "medium",
        advice=CURES[use.kind],
    )


def _computed_low(module: Module) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls with the half dtype that they compute in, and what they are."""
    for call in module.calls(*LOSSES):
        yield from _first_argument(module, call, "loss")
    for call in module.nodes(ast.Call):
        if SPEAKS_OF_LOSS.search(last_name(call.func) or ""):
            yield from (
                found for found in _first_argument(module, call, "loss") if _is_criterion(module, call)
            )
    for call in module.calls(*SOFTMAXES):
        yield from _softmax(module, call, call.args[0] if call.args else None)
    for call in module.method_calls("softmax", "log_softmax", "logsumexp"):
        if module.name_of(call.func) is None:
            yield from _softmax(module, call, _receiver(call))
    for call in module.method_calls("mean", "sum"):
        dtype = _squared_low(module, _receiver(call))
        if dtype is not None:
            yield call, dtype, "hand-written normalisation"


def _softmax(module: Module, call: ast.Call, node: ast.expr | None) -> Iterator[tuple[ast.Call, str, str]]:
    """A softmax in the dtype that it is asked for, else in that of its argument."""
    asked = module.keyword(call, "dtype")
    if asked is not None:
        dtype = low_dtype(module, asked)
    else:
        dtype = low_value(module, node) if node is not None else None
    if dtype is not None:
        yield call, dtype, "softmax"


def _first_argument(module: Module, call: ast.Call, kind: str) -> Iterator[tuple[ast.Call, str, str]]:
    given = call.args[0] if call.args else module.keyword(call, "input")
    dtype = low_value(module, given) if given is not None else None
    if dtype is not None:
        yield call, dtype, kind


def _is_criterion(module: Module, call: ast.Call) -> bool:
    """Whether a call is of a loss module, by what it was made of or by its name."""
    value = module.value_of(call.func)
    if value.kind is Kind.MODULE and isinstance(value.of, str):
        return value.of.startswith("torch.nn.") and value.of.endswith("Loss")
    return CRITERION.search(last_name(call.func) or "") is not None and len(call.args) >= 2


def _squared_low(module: Module, node: ast.expr) -> str | None:
    """The half dtype of `h.pow(2)`, `h.square()`, `h ** 2` or `h * h`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        squares = node.func.attr == "square" or (
            node.func.attr == "pow" and len(node.args) == 1 and module.literal(node.args[0]) == 2
        )
        return low_value(module, node.func.value) if squares else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and module.literal(node.right) == 2:
        return low_value(module, node.left)
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and ast.dump(node.left) == ast.dump(node.right)
    ):
        return low_value(module, node.left)
    return None


def _receiver(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value
