"""A tensor is accumulated step after step together with its autograd graph.

## What it does
Finds `total += loss` and `history.append(loss)` in hot loops where the value comes from a module or from parameters and
was not detached, and where nothing goes backwards through the sum or the list, nor hands the sum to a function that may.
A value that is stored under a new key in each step counts as well, and one that the loop hands to a function or method of the
same file which does such a thing with it, as in `meter.update(loss)`.
The same for an attribute that begins as an empty list, to which a step adds and which nothing else in the file uses.
From a leak report it finds what kept
graphs alive.

## Why it costs
A sum of losses holds the graph of every step, and each graph that was not freed by `backward()` holds its activations.
After `backward()` the nodes are left, and what hooks and views keep. On two CPU cores, a sum of losses of one linear layer
that no backward pass went through kept 4 KiB of its inputs and 5 nodes of the graph with every step.

## Example
```python
import torch

total = 0.0
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss
```

## Use instead
```python
import torch

total = 0.0
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.detach()
```

## Fix safety
Exact for a local sum that is only read: `detach()` shares the value and copies nothing. For a list, a dictionary or an
attribute it is semantic, because someone elsewhere may go backwards through it. `item()` also lets the graph go, but
waits for the device each time.

## References
- PyTorch FAQ, "Don't accumulate history across your training loop": https://pytorch.org/docs/stable/notes/faq.html
- PyTorch documentation, torch.Tensor.detach: https://pytorch.org/docs/stable/generated/torch.Tensor.detach.html
"""

from __future__ import annotations

import ast

from pyrometer.advice import FixClass
from pyrometer.rules.match import Fix, Match, Matches, match
from pyrometer.rules.memory.patterns.accumulating import (
    Addition,
    additions,
    begins_empty,
    is_collected,
    is_trimmed,
)
from pyrometer.rules.memory.patterns.handed import handed
from pyrometer.rules.memory.patterns.leaking import GROWING, last_name, leak_finding, rate, sites
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import replace

RULE = declare(code="PYR202", severity="warning", fix_class="semantic")

READERS = frozenset(["float", "int", "print", "str", "repr", "format", "len", "round"])
"""Functions that only look at a value."""

RECORDING = frozenset(
    [
        *GROWING,
        *("log", "debug", "info", "warning", "error", "critical", "write"),
        *("log_dict", "log_metrics", "add_scalar", "add_scalars", "set_postfix", "set_description"),
    ]
)
"""Methods that note a value, and do not go backwards through it."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Sums and lists that hold the graphs of earlier steps."""
    if not module.imports_torch:
        return
    told: set[int] = set()
    for addition in additions(module):
        if (addition.how != "sum" and is_trimmed(module, addition)) or not (
            values := _graphs(module, addition)
        ):
            continue
        if not _may_go_backward(module, addition):
            told.add(id(addition.node))
            yield _kept(module, addition, values, "")
    for call, inner in handed(module):
        values = _graphs(module, call)
        if id(inner) in told or not values or not _goes_backward_itself(module, call):
            continue
        yield _kept(module, call, values, f" in line {inner.lineno}")


def _graphs(module: Module, addition: Addition) -> list[ast.expr]:
    return [value for value in addition.parts if _has_graph(module, value)]


def _kept(module: Module, addition: Addition, values: list[ast.expr], where: str) -> Match:
    what = ", ".join(f"`{module.source(value)}`" for value in values)
    edits = [replace(module, value, _detached(module, value)) for value in values]
    container = "the sum" if where and addition.how == "sum" else f"`{module.source(addition.target)}`"
    return match(
        addition.node,
        f"{what} is kept in {container}{where} with its autograd graph{addition.hot.during}",
        advice=f"Keep the value without its graph: {', '.join(f'`{edit.text}`' for edit in edits)}.",
        fix=Fix(
            fix_class="semantic" if where else _fix_class(module, addition),
            title=f"Use {edits[0].text}",
            edits=edits,
        ),
        hot=addition.hot.why,
    )


def _goes_backward_itself(module: Module, addition: Addition) -> bool:
    """Whether each step goes backwards through something else, and nothing in the file through what is kept."""
    if addition.loop is None or _may_go_backward(module, addition):
        return False
    backward = [call for call in module.nodes(ast.Call) if _is_backward(module, call)]
    inside = {id(node) for node in ast.walk(addition.loop)}
    return any(id(call) in inside for call in backward) and not any(
        _mentions(call, addition.name) for call in backward
    )


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Sites whose tensors stay with an autograd graph."""
    for number, site in sites(case, "graph"):
        graph = (
            f"with {site.nodes_per_step:.3g} nodes of its graph" if site.nodes_per_step else "with its graph"
        )
        yield leak_finding(
            RULE,
            case,
            number,
            site,
            message=f"{rate(site)} stay in {site.holder or 'what no name leads to'} {graph}",
            advice="Keep values without their graph: detach() them where they are stored"
            + (
                f", and give the container ({site.container}) a bound." if site.container is not None else "."
            ),
        )


def _has_graph(module: Module, value: ast.expr) -> bool:
    found = module.value_of(value)
    return found.is_tensor and found.graph


def _may_go_backward(module: Module, addition: Addition) -> bool:
    """Whether someone may need the graph of what is kept.

    Where each step goes backwards itself, through something else, the graphs of earlier steps are spent. Elsewhere it is
    certain only where every later use just reads the value.
    """
    function = module.function_of(addition.node)
    scope: ast.AST = function or module.tree
    backward = [call for call in ast.walk(scope) if isinstance(call, ast.Call) and _is_backward(module, call)]
    carriers = _carriers(scope, addition)
    if any(_mentions(call, name) for call in backward for name in carriers):
        return True
    if addition.how == "sum" and any(_is_handed_on(module, call, addition) for call in ast.walk(scope)):
        return True
    if not backward and _is_hoard(module, addition):
        return False
    if addition.loop is None or (not backward and module.heat.loops.trains(addition.loop)):
        # A function that each round calls goes backwards itself.
        return addition.loop is None and not backward
    inside = {id(node) for node in ast.walk(addition.loop)}
    if any(id(call) not in inside for call in backward):
        return True
    return not backward and not (addition.is_local and _is_only_read(module, addition))


def _is_backward(module: Module, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "manual_backward"):
        return True
    return module.name_of(call.func) in ("torch.autograd.grad", "torch.autograd.backward")


def _mentions(expression: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name | ast.Attribute) and last_name(node) == name
        for node in ast.walk(expression)
    )


def _carriers(scope: ast.AST, addition: Addition) -> list[str]:
    """The sum or list, and the variables that are computed from it: `mean` of `mean = total / 3`."""
    computed = [
        target.id
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and _mentions(node.value, addition.name)
        for target in node.targets
        if isinstance(target, ast.Name) and not any(_mentions(value, target.id) for value in addition.values)
    ]
    return [addition.name, *computed]


def _is_handed_on(module: Module, call: ast.AST, addition: Addition) -> bool:
    """Whether a call passes the sum to a function, which may go backwards through it."""
    if not isinstance(call, ast.Call):
        return False
    name = module.name_of(call.func) or ""
    if name in READERS or name.startswith(("math.", "numpy.", "torch.is")):
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr in RECORDING:
        return False
    passed = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(
        last_name(part) == addition.name and not any(inner is part for inner in ast.walk(addition.node))
        for arg in passed
        for part in _operands(arg)
    )


def _operands(value: ast.expr) -> list[ast.expr]:
    """`total` and `4` of `total / 4`; of anything else itself."""
    if isinstance(value, ast.BinOp):
        return [*_operands(value.left), *_operands(value.right)]
    return [value]


def _is_hoard(module: Module, addition: Addition) -> bool:
    """Whether an attribute or a global begins empty, and is only ever added to: nobody goes backwards through it."""
    if (
        addition.how != "append"
        or (addition.is_local and addition.loop is not None)
        or is_collected(module, addition)
    ):
        return False
    return begins_empty(module, addition) and not any(
        last_name(use) == addition.name and isinstance(use.ctx, ast.Load) and not _only_adds(module, use)
        for use in module.nodes(ast.Name, ast.Attribute)
    )


def _only_adds(module: Module, use: ast.expr) -> bool:
    """Whether a use of a container adds to it or asks for its length."""
    above = module.parent(use)
    if isinstance(above, ast.Attribute):
        return above.attr in GROWING
    return isinstance(above, ast.Call) and use in above.args and module.name_of(above.func) in READERS


def _is_only_read(module: Module, addition: Addition) -> bool:
    """Whether a local sum or list is only printed, formatted, converted or detached."""
    assert isinstance(addition.target, ast.Name)
    uses = [
        use
        for use in module.uses(addition.target.id, addition.node)
        if addition.node not in (use, *module.ancestors(use))
    ]
    return bool(uses) and all(_reads(module, use) for use in uses)


def _reads(module: Module, use: ast.Name) -> bool:
    child: ast.AST = use
    for above in module.ancestors(use):
        if isinstance(above, ast.FormattedValue):
            return True
        if isinstance(above, ast.Call):
            name = module.name_of(above.func)
            if name in READERS:
                return True
            if isinstance(above.func, ast.Attribute) and above.func.attr in (
                "item",
                "detach",
                "tolist",
                "format",
            ):
                return True
            if child is not above.func:
                return False
        elif not isinstance(above, ast.BinOp | ast.UnaryOp | ast.Attribute):
            return False
        child = above
    return False


def _fix_class(module: Module, addition: Addition) -> FixClass:
    if addition.how == "sum" and addition.is_local and _is_only_read(module, addition):
        return "exact"
    return "semantic"


def _detached(module: Module, value: ast.expr) -> str:
    text = module.source(value)
    simple = isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return f"{text}.detach()" if simple else f"({text}).detach()"
