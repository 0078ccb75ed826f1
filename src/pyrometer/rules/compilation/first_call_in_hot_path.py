"""The first request pays for compiling, because nothing warmed the model up.

## What it does

In a measurement: reports a workload with a deadline whose first call misses it because of torch.compile. In source text: reports
a request handler that calls torch.compile itself the first time, and a compiled model that is called by handlers only, so that the
first request is the first call.

## Why it costs

torch.compile compiles in the first call, not when it is applied. That call takes seconds to minutes, where the following ones take
milliseconds: the first request times out, and so does the first one of every new shape and of every new process.

## Example

```python
import torch
from fastapi import FastAPI

app = FastAPI()
model = torch.compile(torch.nn.Linear(8, 2))


@app.post("/predict")
@torch.inference_mode()
def predict(values: list[float]):
    return model(torch.tensor(values)).tolist()
```

## Use instead

Call the compiled model once with every shape before the first request is taken.

```python
import torch
from fastapi import FastAPI

app = FastAPI()
model = torch.compile(torch.nn.Linear(8, 2))
with torch.inference_mode():
    model(torch.zeros(8))


@app.post("/predict")
@torch.inference_mode()
def predict(values: list[float]):
    return model(torch.tensor(values)).tolist()
```

## Fix safety

Exact: a call more before the first request changes no result. Warm up in the same gradient mode and under the same autocast as
requests, or the first one compiles again.

## References

- PyTorch recipe, compile time caching: https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- PyTorch documentation, torch.compiler.set_stance:
  https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
"""

from __future__ import annotations

import ast

from pyrometer.quantity import format_seconds, significant
from pyrometer.rules.compilation.patterns.compile_calls import CompileCall, compile_calls, compiled_at
from pyrometer.rules.compilation.patterns.repeating import is_guarded
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR406",
    severity="warning",
    fix_class="exact",
    limits=(
        Limit(
            "min_ratio",
            10.0,
            "first calls are several times slower without any compiler: caches, lazy set-up",
        ),
        Limit("min_compile_share", 0.5, "less is not what makes the first call miss the deadline"),
    ),
)

ROUTES = frozenset(["get", "post", "put", "patch", "websocket", "route", "endpoint"])
"""Methods of web frameworks that make a function the handler of requests."""

ADVICE = "Call the compiled model once with each shape before the first request, in the mode in which requests run it."


@RULE.in_source
def find(module: Module) -> Matches:
    """Handlers that compile, or make the first call of what was compiled."""
    for call in compile_calls(module):
        if module.region(call.node).test:
            continue
        handler = _handler(module, call.runs)
        if handler is not None:
            if is_guarded(module, call.runs):
                why = f"the request handler {handler}"
                yield match(call.node, "The first request waits for torch.compile", advice=ADVICE, hot=why)
        elif _is_first_called_by_handlers(module, call):
            yield match(
                call.node,
                "Only request handlers call what is compiled here, so that the first request waits for it",
                advice=ADVICE,
                confidence="medium",
            )


@RULE.in_evidence("measurement")
def explain(case: Case) -> Findings:
    """A first call that misses the deadline for its compilation."""
    measured = case.measurement
    if measured is None or measured.deadline_s is None or not measured.compile_s or measured.median_s <= 0:
        return
    first_s, ratio = measured.first_call_s, measured.first_call_s / measured.median_s
    compiles = measured.compile_s >= case.limit(RULE, "min_compile_share") * first_s
    if first_s <= measured.deadline_s or ratio < case.limit(RULE, "min_ratio") or not compiles:
        return
    yield RULE.finding(
        message=f"The first call takes {format_seconds(first_s)}, {significant(first_s / measured.deadline_s)} times the deadline "
        f"of {format_seconds(measured.deadline_s)}; {format_seconds(measured.compile_s)} of it is compiling",
        where=compiled_at(case),
        evidence={
            "first_call_s": first_s,
            "compile_s": measured.compile_s,
            "median_s": measured.median_s,
            "deadline_s": measured.deadline_s,
        },
        links=["/measurement/first_call_s"],
        confidence="high",
        advice=ADVICE,
        resource="first-call",
    )


def _is_first_called_by_handlers(module: Module, call: CompileCall) -> bool:
    """Whether a name of the module holds what is compiled, and handlers alone call it, and nobody else gets it."""
    name = _global_name(module, call)
    if name is None:
        return False
    loads = [node for node in module.nodes(ast.Name) if node.id == name and isinstance(node.ctx, ast.Load)]
    loads = [node for node in loads if node is not call.target]
    return bool(loads) and all(_is_call_in_handler(module, node) for node in loads)


def _global_name(module: Module, call: CompileCall) -> str | None:
    if call.decorated is not None:
        return call.decorated.name if module.parent(call.decorated) is module.tree else None
    match module.parent(call.node):
        case ast.Assign(targets=[ast.Name(id=name)]) as statement if module.parent(statement) is module.tree:
            return name
    return None


def _is_call_in_handler(module: Module, node: ast.Name) -> bool:
    parent = module.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node and _handler(module, node) is not None


def _handler(module: Module, node: ast.AST) -> str | None:
    """The name of the request handler that a node is in; `None` outside of one."""
    function = module.function_of(node)
    for decorator in function.decorator_list if function is not None else ():
        target = decorator.func if isinstance(decorator, ast.Call) else None
        if isinstance(target, ast.Attribute) and target.attr in ROUTES:
            return function.name if function is not None else None
    return None
