"""Inference records a graph for a backward pass that never comes.

## What it does
Finds loops over a loader and request handlers that run a model after `eval()`, or in a function named for evaluation,
without `no_grad` or `inference_mode` and without any backward pass. With records it says what autograd kept at the peak:
where the program runs in grad mode with saved activations, and where leaving the graph out was rehearsed to save memory.

## Why it costs
Every layer keeps its inputs for a backward pass, so memory grows with the depth instead of staying at the widest two
layers. `eval()` only switches dropout and normalisation; it does not stop recording.

## Example
```python
import torch


def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
    return correct
```

## Use instead
```python
import torch


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
    return correct
```

## Fix safety
Semantic: the same values, but what the function returns has no graph any more, so nobody can go backwards through it.

## References
- PyTorch notes, Autograd mechanics, "Locally disabling gradient computation":
  https://pytorch.org/docs/stable/notes/autograd.html
- PyTorch documentation, torch.inference_mode:
  https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.memory.patterns.accumulating import step_loop
from pyrometer.rules.memory.patterns.leaking import last_name
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.source.edit import edit
from pyrometer.source.value import Kind

if TYPE_CHECKING:
    from pyrometer.source.module import FunctionNode, Module

RULE = declare(
    code="PYR201",
    severity="warning",
    fix_class="semantic",
    lever="inference_mode",
    limits=(Limit("min_share", 0.02, "a smaller part of the peak is within what two runs differ by"),),
)

EVALUATING = re.compile(
    r"^_?(eval|evaluate|evaluation|validate|validation|test|predict|infer|inference)(_|$)"
)
"""Names of functions that do not train."""

GRADIENT_ATTRIBUTES = frozenset(
    ["backward", "manual_backward", "requires_grad_", "grad", "zero_grad", "requires_grad"]
)
"""Whoever uses one of these works with gradients."""

SWITCHES = (
    "torch.set_grad_enabled",
    "torch.autograd.set_grad_enabled",
    "torch.autograd.grad",
    "torch.func.grad",
)
ADVICE = "Run it under `torch.inference_mode()`, or `torch.no_grad()` where the results are changed in place later."


@RULE.in_source
def find(module: Module) -> Matches:
    """Model calls in evaluating code that record a graph; one for each function."""
    if not module.imports_torch or any(module.calls(*SWITCHES)):
        return
    nodes: set[ast.AST] = set()
    evaluating: dict[tuple[ast.AST, str | None], bool] = {}
    for call in _suspects(module):
        function = module.function_of(call)
        if (function or module.tree) in nodes or not _runs_model(module, call):
            continue
        hot, region = module.hot(call), module.region(call)
        if hot is None or region.no_grad or region.inference_mode or region.scripted or region.test:
            continue
        if not (hot.per == "request" or step_loop(module, call)) or _is_about_gradients(module, call):
            continue
        place = function or module.tree, last_name(call.func)
        if place not in evaluating:  # which reads the whole function
            evaluating[place] = _evaluates(function, *place, only=not _trains(module))
        if not evaluating[place]:
            continue
        if function is not None and (
            _is_part_of_forward(module, function) or _is_called_without_gradients(module, function)
        ):
            continue
        nodes.add(function or module.tree)
        yield match(
            call,
            f"`{module.source(call.func)}` records a graph for a backward pass that does not come{hot.during}",
            advice=ADVICE,
            fix=_fix(module, function),
            hot=hot.why,
        )


def _is_about_gradients(module: Module, call: ast.Call) -> bool:
    """Whether a block of the program's own around a call deals with gradients: `with preserve_grad_state(model):`."""
    items = (
        item.context_expr
        for above in module.ancestors(call)
        if isinstance(above, ast.With | ast.AsyncWith)
        for item in above.items
    )
    return any("grad" in module.source(item) for item in items)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """What autograd kept although nothing went backwards."""
    memory, program = case.memory, case.program
    assert memory is not None
    rehearsed = next(iter(given_advice(memory, "/memory", "no-grad")), None)
    kept = memory.ledger_bytes.get("activations", 0)
    share = kept / max(memory.peak_bytes, 1)
    records = program is not None and program.kind == "inference" and program.grad_mode == "grad"
    if rehearsed is None and not (records and share >= case.limit(RULE, "min_share")):
        return
    saves = rehearsed.advice.saves_bytes if rehearsed is not None else kept
    yield RULE.finding(
        message=f"Autograd keeps {format_bytes(kept)} ({format_percent(share, 2)} of the peak of "
        f"{format_bytes(memory.peak_bytes)}) for a backward pass that does not come",
        where=rehearsed.place if rehearsed is not None else _model_place(case),
        evidence={
            "activations_bytes": kept,
            "share_of_peak": round(share, 4),
            "peak_bytes": memory.peak_bytes,
            "grad_mode": program.grad_mode if program is not None else None,
        },
        links=[
            "/memory/ledger_bytes/activations",
            *(["/program/grad_mode"] if records else []),
            *([rehearsed.link] if rehearsed is not None else []),
        ],
        cost=Cost(bytes=saves, method="activations at the peak that nothing goes backwards through"),
        gain=rehearsed.advice.gain if rehearsed is not None else None,
        confidence="high" if rehearsed is not None or records else "medium",
        advice=ADVICE,
        sketch="with torch.inference_mode():\n    ...",
        resource="peak:activations",
    )


def _model_place(case: Case) -> Place:
    program = case.program
    return Place(file=program.model_file, line=program.model_line) if program is not None else Place()


def _is_part_of_forward(module: Module, function: FunctionNode) -> bool:
    """Whether a module's forward calls this function, such as `predict_masks`: who calls the module says about gradients."""
    callers = [module.function_of(call) for call in module.heat.calls_of(function)]
    return any(caller is not None and caller.name == "forward" for caller in callers)


def _suspects(module: Module) -> Iterator[ast.Call]:
    """Calls in functions that are called like evaluation, and of what the file calls `.eval()` on: seen without a value."""
    switched = _switched(module)
    for call in module.nodes(ast.Call):
        function = module.function_of(call)
        is_named = function is not None and EVALUATING.match(function.name)
        if is_named or last_name(call.func) in switched:
            yield call


def _switched(module: Module) -> set[str]:
    """Names of what `.eval()` is called on, or of what it gives: `net = build().eval()`."""
    names: set[str | None] = set()
    for call in module.index.calls_ending_in("eval"):
        if isinstance(call.func, ast.Attribute):
            names.add(last_name(call.func.value))
            above = module.parent(call)
            names |= (
                {last_name(target) for target in above.targets} if isinstance(above, ast.Assign) else set()
            )
    return {name for name in names if name is not None}


def _trains(module: Module) -> bool:
    """Whether anything in the file goes backwards."""
    return any(node.attr in {"backward", "manual_backward"} for node in module.nodes(ast.Attribute))


def _runs_model(module: Module, call: ast.Call) -> bool:
    """Whether a call runs a module that is no loss."""
    called = module.value_of(call.func)
    return called.kind is Kind.MODULE and not (isinstance(called.of, str) and called.of.endswith("Loss"))


def _evaluates(function: FunctionNode | None, scope: ast.AST, name: str | None, *, only: bool) -> bool:
    """Whether the code around the call of a model of this name evaluates and leaves gradients alone.

    `only`: nothing in the file trains, so that a model of this name, put into evaluation anywhere, is not trained here.
    """
    if any(isinstance(node, ast.Attribute) and node.attr in GRADIENT_ATTRIBUTES for node in ast.walk(scope)):
        return False
    if any(
        keyword.arg == "requires_grad"
        for node in ast.walk(scope)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    ):
        return False
    if (only and name != "self") or (function is not None and EVALUATING.match(function.name)):
        return True
    return name is not None and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "eval"
        and last_name(node.func.value) == name
        for node in ast.walk(scope)
    )


def _is_called_without_gradients(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the callers of this file switch the graph off."""
    regions = [module.region(call) for call in module.heat.calls_of(function)]
    return bool(regions) and all(region.no_grad or region.inference_mode for region in regions)


def _fix(module: Module, function: FunctionNode | None) -> Fix | None:
    """Decorate the function, where `torch` is a name there."""
    if function is None or not any(
        alias.name == "torch" and alias.asname is None
        for node in module.tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    ):
        return None
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    indent = " " * function.col_offset
    added = edit(function.lineno, 0, function.lineno, 0, f"{indent}@torch.no_grad()\n")
    if isinstance(function, ast.AsyncFunctionDef) or _yields(function) or first != function.lineno:
        return None
    return Fix(fix_class="semantic", title="Decorate it with @torch.no_grad()", edits=[added])


def _yields(function: FunctionNode) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
