"""A formula overflows or loses its gradient where an equivalent one is stable.

## What it does
Finds `log(softmax(x))`, `log(sigmoid(x))`, `log(sum(exp(x)))`, `log(1 + exp(x))`, a softmax written with `exp` and without taking
the maximum off, a binary cross entropy of `sigmoid(x)`, `(x - x.mean()) / x.std()`, and the root of a sum of squared differences
through which gradients flow.

## Why it costs
`exp` of a float32 is infinite above 88.7, and of a float16 above 11; a softmax or sigmoid that rounds to 0 has the logarithm
minus infinity. The slope of a root is infinite at 0, so that the gradient there is NaN. One such value spreads over all
parameters in a step. The sound formulas also launch one operator instead of two or three.

## Example
```python
import torch

log_probabilities = torch.log(torch.softmax(scores, dim=-1))
total = torch.log(torch.exp(scores).sum(-1))
```

## Use instead
```python
import torch

log_probabilities = torch.log_softmax(scores, dim=-1)
total = torch.logsumexp(scores, dim=-1)
```

## Fix safety
The replacement computes the same formula with fewer roundings: results differ in the last digits, and where the first formula
gives infinity or NaN. `log(softmax(x))` and `log(sigmoid(x))` are rewritten on request.

## References
- PyTorch, torch.nn.functional.log_softmax: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
- PyTorch, torch.nn.BCEWithLogitsLoss: https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
- PyTorch, torch.logsumexp: https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html
"""

from __future__ import annotations

import ast
import re

from pyrometer.rules.match import Fix, Match, Matches, match
from pyrometer.rules.numerics.patterns.formulas import applied, followed, functional, renamed, same
from pyrometer.rules.rule import Module, declare
from pyrometer.source.edit import replace
from pyrometer.source.value import Kind

RULE = declare(code="PYR710", severity="warning", fix_class="tolerance")

SUMS = frozenset({"sum", "mean"})
WORDS = ("softmax", "sigmoid", "exp(", "sqrt(", "std(")
"""One of them is in every formula that is looked for."""
BELOW_ZERO = re.compile(r"log_?p|log_?soft|log_?sig")
"""Names of logarithms of probabilities, of which `exp` cannot overflow."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Formulas with a sound equivalent."""
    if not module.imports_torch or not any(word in module.text for word in WORDS):
        return
    for node in module.nodes(ast.Call, ast.BinOp):
        found = _judged(module, node)
        if found is not None and not module.region(node).test and not _is_prepared(module, node):
            yield found


def _is_prepared(module: Module, node: ast.expr) -> bool:
    """Whether a place sets something up from its settings, where the numbers are the author's own."""
    function = module.function_of(node)
    return function is not None and function.name == "__init__"


def _judged(module: Module, node: ast.Call | ast.BinOp) -> Match | None:
    if isinstance(node, ast.BinOp):
        return _quotient(module, node) if isinstance(node.op, ast.Div) else None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "log":
        return _logarithm(module, node)
    if name == "sqrt":
        return _root(module, node)
    if name == "binary_cross_entropy" and module.name_of(node.func) == f"torch.nn.functional.{name}":
        return _cross_entropy(module, node)
    return None


def _logarithm(module: Module, call: ast.Call) -> Match | None:
    log = applied(module, call)
    if log is None or log.rest or call.keywords:
        return None
    inner = followed(module, log.value)
    found = applied(module, inner)
    direct = inner is log.value
    if found is not None and found.name == "softmax":
        return _log_softmax(module, call, found.call, direct=direct)
    if found is not None and found.name == "sigmoid" and not found.rest:
        return _log_sigmoid(module, call, found.value, direct=direct)
    if found is not None and found.name == "sum" and _is_exp(module, found.value):
        return match(
            call,
            "`log` of a sum of `exp` is infinite for values above 88",
            advice="Use `torch.logsumexp(x, dim=...)`, which takes the maximum off first.",
        )
    if _is_one_plus_exp(module, inner):
        return match(
            call,
            "`log(1 + exp(x))` is infinite for values above 88",
            advice="Use `torch.nn.functional.softplus(x)`, which is the same and stays in range.",
        )
    return None


def _log_softmax(module: Module, call: ast.Call, softmax: ast.Call, *, direct: bool) -> Match:
    fix = None
    if direct and isinstance(softmax.func, ast.Attribute):
        text = renamed(module, softmax, "log_softmax")
        fix = Fix(fix_class="tolerance", title="Use log_softmax", edits=[replace(module, call, text)])
    return match(
        call,
        "`log(softmax(x))` is minus infinity where the softmax rounds to 0",
        advice="Use `log_softmax(x, dim=...)`, which stays with logarithms and is one operator instead of two.",
        fix=fix,
    )


def _log_sigmoid(module: Module, call: ast.Call, value: ast.expr, *, direct: bool) -> Match:
    home = functional(module)
    fix = None
    if direct and home is not None:
        edit = replace(module, call, f"{home}.logsigmoid({module.source(value)})")
        fix = Fix(fix_class="tolerance", title="Use logsigmoid", edits=[edit])
    return match(
        call,
        "`log(sigmoid(x))` is minus infinity for values below -89",
        advice="Use `torch.nn.functional.logsigmoid(x)`; for a loss, `binary_cross_entropy_with_logits`.",
        fix=fix,
    )


def _quotient(module: Module, node: ast.BinOp) -> Match | None:
    """`e / e.sum(...)` with `e = exp(x)`, and `(x - x.mean()) / x.std()`."""
    total = applied(module, followed(module, node.right))
    if total is not None and total.name == "std" and _is_centred(module, node.left, total.value):
        return match(
            node,
            "the deviation is 0 where all values are equal, and the quotient NaN",
            advice=f"Add a small number to the divisor: `({module.source(total.call)} + 1e-6)`, or use `layer_norm`.",
            confidence="medium",
        )
    if (
        total is None
        or total.name != "sum"
        or not same(total.value, node.left)
        or not _is_exp(module, node.left)
    ):
        return None
    return match(
        node,
        "a softmax is written with `exp` and without taking the maximum off: above 88 it is NaN",
        advice="Use `torch.softmax(x, dim=...)`, which takes the maximum off first and is one operator.",
    )


def _is_centred(module: Module, node: ast.expr, value: ast.expr) -> bool:
    """Whether an expression is a tensor of torch less its own mean."""
    node = followed(module, node)
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and same(node.left, value)):
        return False
    mean = applied(module, followed(module, node.right))
    is_own = mean is not None and mean.name == "mean" and same(mean.value, value)
    return is_own and module.value_of(value).kind is Kind.TENSOR


def _root(module: Module, call: ast.Call) -> Match | None:
    """The root of a sum of squared differences, where a gradient flows."""
    root = applied(module, call)
    total = applied(module, followed(module, root.value)) if root is not None and not root.rest else None
    if total is None or total.name not in SUMS or not _is_difference_squared(module, total.value):
        return None
    value, region = module.value_of(total.value), module.region(call)
    if value.kind is not Kind.TENSOR or not value.graph or region.no_grad or region.inference_mode:
        return None
    instead = "torch.linalg.vector_norm(a - b, dim=...)" if total.name == "sum" else "(mean + 1e-8).sqrt()"
    return match(
        call,
        "the gradient of this root is NaN where both sides are equal",
        advice=f"Use `{instead}`, whose gradient is defined there, or add a small number under the root.",
        confidence="medium",
    )


def _cross_entropy(module: Module, call: ast.Call) -> Match | None:
    given = call.args[0] if call.args else None
    inner = applied(module, followed(module, given)) if given is not None else None
    if given is None or inner is None or inner.name != "sigmoid" or inner.rest:
        return None
    fix = None
    if inner.call is given:
        edits = [
            replace(module, call.func, module.source(call.func) + "_with_logits"),
            replace(module, given, module.source(inner.value)),
        ]
        fix = Fix(fix_class="tolerance", title="Use binary_cross_entropy_with_logits", edits=edits)
    return match(
        call,
        "binary cross entropy of `sigmoid(x)` has no gradient where the sigmoid rounds to 0 or 1",
        advice="Give the scores themselves to `binary_cross_entropy_with_logits`, which is one operator and stays in range.",
        fix=fix if isinstance(call.func, ast.Attribute) else None,
    )


def _is_exp(module: Module, node: ast.expr) -> bool:
    """Whether an expression is `exp(x)`, of an x whose maximum was not taken off."""
    found = applied(module, followed(module, node))
    if found is None or found.name != "exp" or found.rest:
        return False
    if BELOW_ZERO.search(module.source(found.value).lower()):
        return False
    argument = followed(module, found.value)
    if _is_never_positive(module, argument) or _is_lowered_in_place(module, found.value):
        return False
    is_difference = isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Sub)
    return not (is_difference or isinstance(argument, ast.UnaryOp))


def _is_lowered_in_place(module: Module, node: ast.expr) -> bool:
    """Whether something is taken off a name before: `scores -= scores.max()`."""
    return isinstance(node, ast.Name) and any(
        isinstance(change.op, ast.Sub)
        and isinstance(change.target, ast.Name)
        and change.target.id == node.id
        and change.lineno < node.lineno
        and module.function_of(change) is module.function_of(node)
        for change in module.nodes(ast.AugAssign)
    )


def _is_never_positive(module: Module, node: ast.expr) -> bool:
    """Whether a factor is a negative number, as in the bell curve `exp(-0.5 * (x / sigma) ** 2)`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        right = module.literal(node.right)
        if isinstance(right, int | float) and right < 0:
            return True
        node = node.left
    value = module.literal(node)
    return isinstance(node, ast.UnaryOp) or (isinstance(value, int | float) and value < 0)


def _is_one_plus_exp(module: Module, node: ast.expr) -> bool:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return False
    sides = (node.left, node.right)
    ones = [side for side in sides if module.literal(side) == 1]
    exps = [side for side in sides if (found := applied(module, side)) is not None and found.name == "exp"]
    return len(ones) == 1 and len(exps) == 1


def _is_difference_squared(module: Module, node: ast.expr) -> bool:
    """Whether an expression is the square of a difference, which is 0 where both sides are equal."""
    node = followed(module, node)
    base: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and module.literal(node.right) == 2:
        base = node.left
    else:
        found = applied(module, node)
        if found is not None and (
            found.name == "square"
            or (found.name == "pow" and found.rest and module.literal(found.rest[0]) == 2)
        ):
            base = found.value
    if base is None:
        return False
    base = followed(module, base)
    return isinstance(base, ast.BinOp) and isinstance(base.op, ast.Sub)
