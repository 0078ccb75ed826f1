"""The result of torch.compile is discarded, so nothing is compiled.

## What it does

Reports a statement that calls `torch.compile(model)` and keeps nothing of it.

## Why it costs

torch.compile does not change what it is given: it returns a compiled version beside it. The model that is called afterwards runs
eagerly, while the program looks compiled.

## Example

```python
import torch

torch.compile(model)
model(x)
```

## Use instead

Keep what it returns, or compile a module in place.

```python
import torch

model = torch.compile(model)
model(x)
```

## Fix safety

Tolerance: from then on the model is compiled, which rounds in another order. The parameters of a compiled module are named
`_orig_mod.…` in its `state_dict()`; `model.compile()` compiles in place and keeps the names.

## References

- PyTorch documentation, torch.compile: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- PyTorch documentation, Module.compile: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.compilation.patterns.compile_calls import CompileCall, compile_calls
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Module, declare
from pyrometer.source.edit import replace

RULE = declare(code="PYR416", severity="warning", fix_class="tolerance")


@RULE.in_source
def find(module: Module) -> Matches:
    """Calls that are statements."""
    for call in compile_calls(module):
        statement = module.parent(call.node)
        if not isinstance(statement, ast.Expr) or call.target is None or module.region(call.node).test:
            continue
        yield match(
            call.node,
            f"The compiled {module.source(call.target)} is thrown away: what is called afterwards runs eagerly",
            advice="Keep what torch.compile returns, or compile a module in place with its own compile().",
            fix=_fix(module, call, statement),
        )


def _fix(module: Module, call: CompileCall, statement: ast.Expr) -> Fix | None:
    """Assign it to the name, where that is a variable of the same scope."""
    target = call.target
    if not isinstance(target, ast.Name) or not _is_own(module, target):
        return None
    edit = replace(module, statement, f"{target.id} = {module.source(call.node)}")
    return Fix(fix_class="tolerance", title=f"Assign it to {target.id}", edits=[edit])


def _is_own(module: Module, name: ast.Name) -> bool:
    """Whether assigning to the name means the same variable: it is an argument of the function, or assigned there already."""
    function = module.function_of(name)
    if function is None:
        return module.class_of(name) is None
    arguments = function.args
    if name.id in {
        argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }:
        return True
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name.id
        for statement in function.body
        for node in ast.walk(statement)
        if module.function_of(node) is function
    )
