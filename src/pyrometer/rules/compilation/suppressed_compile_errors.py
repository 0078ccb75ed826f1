"""Compiler errors are suppressed: what fails to compile silently runs eagerly.

## What it does

Reports `torch._dynamo.config.suppress_errors = True` outside of tests and of conditions, unless the file switches the compiler off
altogether.

## Why it costs

A function whose compilation fails is tried, given up and run eagerly. The time for the attempt is spent in every process, the speed
never comes, and a backend that is broken (no C++ compiler, a missing Triton) looks like a program that compiles and is slow.

## Example

```python
import torch
import torch._dynamo

torch._dynamo.config.suppress_errors = True
model = torch.compile(model)
```

## Use instead

Leave out what does not compile, and let the rest fail loudly.

```python
import torch
import torch._dynamo

torch._dynamo.config.suppress_errors = False
model.head = torch.compiler.disable(model.head)
model = torch.compile(model)
```

## Fix safety

Semantic: taken out, what failed in silence raises.

## References

- PyTorch documentation, torch.compiler.disable: https://docs.pytorch.org/docs/stable/generated/torch.compiler.disable.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.compilation.patterns.debug_settings import is_behind_flag
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Module, declare
from pyrometer.source.edit import delete_statement

RULE = declare(code="PYR415", severity="warning", fix_class="semantic")

SETTING = "torch._dynamo.config.suppress_errors"


@RULE.in_source
def find(module: Module) -> Matches:
    """Assignments of True."""
    if "suppress_errors" not in module.text or "config.disable = True" in module.text:
        return
    for assignment in module.nodes(ast.Assign):
        names = [module.name_of(target) for target in assignment.targets if isinstance(target, ast.Attribute)]
        if SETTING not in names or module.literal(assignment.value) is not True:
            continue
        if module.region(assignment).test or is_behind_flag(module, assignment):
            continue
        fix = Fix(
            fix_class="semantic",
            title="Let the compiler's errors be seen",
            edits=[delete_statement(module, assignment)],
        )
        yield match(
            assignment,
            "What fails to compile runs eagerly without a word",
            advice="Take it out, and keep what does not compile out of compiled code with torch.compiler.disable.",
            fix=fix,
        )
