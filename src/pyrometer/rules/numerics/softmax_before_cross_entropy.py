"""Cross entropy gets probabilities instead of logits.

## What it does
Finds `cross_entropy(softmax(x), target)` and `CrossEntropyLoss` on the result of a softmax, in the same file.

## Why it costs
Cross entropy takes the softmax itself. Of probabilities it is computed a second time, on values between 0 and 1: the loss cannot
fall below `log(1 + (C - 1) / e)` for C classes, 1.46 for ten, gradients are small everywhere, and the model learns slowly or
not at all. A step does as much work as before.

## Example
```python
from torch.nn import functional as F

probabilities = F.softmax(model(inputs), dim=-1)
loss = F.cross_entropy(probabilities, targets)
```

## Use instead
```python
from torch.nn import functional as F

scores = model(inputs)
loss = F.cross_entropy(scores, targets)
probabilities = scores.softmax(dim=-1)
```

## Fix safety
No fix is applied: the loss becomes another one, which is what was meant.

## References
- PyTorch, torch.nn.CrossEntropyLoss: https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.numerics.patterns.formulas import applied, followed
from pyrometer.rules.rule import Module, declare
from pyrometer.source.value import Kind

RULE = declare(code="PYR711", severity="error", fix_class="semantic")

LOSSES = ("torch.nn.CrossEntropyLoss", "torch.nn.modules.loss.CrossEntropyLoss")


@RULE.in_source
def find(module: Module) -> Matches:
    """Cross entropies whose first argument is a softmax."""
    if not ("softmax" in module.text and ("cross_entropy" in module.text or "CrossEntropy" in module.text)):
        return
    if not module.imports_torch:
        return
    for call in module.nodes(ast.Call):
        given = call.args[0] if call.args else module.keyword(call, "input")
        if given is None or not _is_cross_entropy(module, call) or module.region(call).test:
            continue
        inner = applied(module, followed(module, given))
        ending = _softmax_of_module(module, followed(module, given))
        if ending is not None:
            yield match(
                call,
                f"cross entropy takes the softmax itself, and the forward in line {ending.lineno} returns one",
                advice="Return the scores from `forward`, and take the softmax where probabilities are shown.",
            )
        elif inner is not None and inner.name == "softmax":
            yield match(
                call,
                "cross entropy takes the softmax itself, and here takes it of probabilities",
                advice=f"Give it the scores: `{module.source(inner.value)}`.",
            )


def _softmax_of_module(module: Module, given: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The forward of the module of this file that a value comes from, where all it returns is a softmax."""
    made = module.value_of(given.func).of if isinstance(given, ast.Call) else None
    forward = module.classes.method(made, "forward") if isinstance(made, ast.ClassDef) else None
    if forward is None:
        return None
    returned = [
        node.value for node in ast.walk(forward) if isinstance(node, ast.Return) and node.value is not None
    ]
    ends = [applied(module, followed(module, value)) for value in returned]
    return forward if ends and all(end is not None and end.name == "softmax" for end in ends) else None


def _is_cross_entropy(module: Module, call: ast.Call) -> bool:
    if module.name_of(call.func) == "torch.nn.functional.cross_entropy":
        return True
    value = module.value_of(call.func)
    return value.kind is Kind.MODULE and value.of in LOSSES
