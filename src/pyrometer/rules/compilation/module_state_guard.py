"""An integer that a module counts is part of its compiled graph, so that each step compiles again.

## What it does

Reports a compiled module of which an integer attribute has another value in each call: a step counter, a position, a length. In
source text it reports `self.step += 1` in the `forward` of a module that the file compiles, where the attribute begins as an
integer.

## Why it costs

torch.compile takes integers of modules for constants of the architecture, such as a stride, and compiles for one value. A counter
is a new value each time: every step compiles, up to the limit of eight, and from then on the module runs eagerly. (Floats
and arguments are kept open after their second value; integers of modules never are.) On two CPU cores tracing a
linear layer with a counter took about 60 ms in each of the first eight steps, without any code generation; a step of the same layer
that fits its graph took 0.02 ms.

## Example

```python
import torch


class Schedule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x / self.step


model = torch.compile(Schedule())
```

## Use instead

Keep the counter in a buffer, or count outside of the compiled module.

```python
import torch


class Schedule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.step.add_(1)
        return x / self.step


model = torch.compile(Schedule())
```

## Fix safety

Semantic: a buffer is saved with the module's state unless `persistent=False`, and moves with the module to its device.

## References

- PyTorch documentation, recompilation:
  https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.place import Place
from pyrometer.rules.compilation.patterns.compile_calls import mentions_compile
from pyrometer.rules.compilation.patterns.hypothetical import is_hypothetical
from pyrometer.rules.compilation.patterns.recompilations import Recompilations, recompilations, strict_words
from pyrometer.rules.compilation.patterns.spread import RESOURCE, once_in_a_run
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR413", severity="warning", fix_class="semantic")

SETTING = "torch._dynamo.config.allow_unspec_int_on_nn_module"
ADVICE = "Keep it in a buffer and count with add_, or count outside of the compiled module."


@RULE.in_source
def find(module: Module) -> Matches:
    """Counters in compiled forwards."""
    for statement, target in _counters(module):
        yield match(
            statement,
            f"{module.source(target)} counts in compiled code, which is compiled again for each value",
            advice=ADVICE,
        )


@RULE.in_evidence("compiled")
def explain(case: Case) -> Findings:
    """One finding per module and attribute."""
    report = case.compiled
    if report is None:
        return
    would = is_hypothetical(report)
    for group in recompilations(report, "module state"):
        changed = group.changed
        if changed is None:
            continue
        words = strict_words(report, [changed.source]) or ""
        yield RULE.finding(
            message=f"{group.told(would=would)} for an integer that changes: {group.what}",
            severity="info" if would else "warning",
            where=_place(group, changed.name.rpartition(".")[2], case),
            evidence={**group.figures, "attribute": changed.name},
            links=group.links,
            cost=None if would else once_in_a_run(group.compile_s, case, report),
            confidence="high",
            advice=f"{ADVICE} Where it must stay an integer, let torch open it.",
            rewrite=f"{SETTING} = True" if SETTING in words else None,
            resource=RESOURCE,
        )


def _counters(module: Module) -> Iterator[tuple[ast.AugAssign, ast.Attribute]]:
    """Statements in compiled code that change an integer attribute of a module, with the attribute."""
    if not mentions_compile(module) or "allow_unspec_int_on_nn_module" in module.text:
        return
    for statement in module.nodes(ast.AugAssign):
        target = statement.target
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        region = module.region(statement)
        if not region.compiled or region.test or region.scripted or module.is_rare(statement):
            continue
        if module.classes.is_self(target.value) is not None and _begins_as_integer(module, target):
            yield statement, target


def _place(group: Recompilations, attribute: str, case: Case) -> Place:
    """The only line of the user's files that counts the attribute, else the function that was compiled again."""
    lines = [
        Place(file=module.path, line=statement.lineno, function=group.last.function)
        for module in case.modules
        for statement, target in _counters(module)
        if target.attr == attribute
    ]
    return lines[0] if len(lines) == 1 else group.place


def _begins_as_integer(module: Module, target: ast.Attribute) -> bool:
    """Whether the class's `__init__` sets the attribute to an integer, and nothing sets it to anything else."""
    owner = module.class_of(target)
    if owner is None or not module.classes.is_module(owner):
        return False
    assignments: list[ast.Assign | ast.AnnAssign] = [*module.nodes(ast.Assign), *module.nodes(ast.AnnAssign)]
    values = [
        assignment.value
        for assignment in assignments
        if module.class_of(assignment) is owner
        and any(_same(target, node) for node in _targets(assignment))
        and assignment.value is not None
    ]
    return bool(values) and all(type(module.literal(value)) is int for value in values)


def _targets(assignment: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]


def _same(one: ast.Attribute, other: ast.expr) -> bool:
    return isinstance(other, ast.Attribute) and other.attr == one.attr and isinstance(other.value, ast.Name)
