"""Pieces of a tensor are taken one by one, and the gradient of each is as large as the whole.

## What it does
Reads in a trace what the backward passes of `x[i]` and `x[a:b]` take, and speaks where they are many and take a good part of the step.

## Why it costs
Autograd does not know what the other pieces are: the backward pass of each piece fills a tensor as large as `x` with zeros, writes
the piece into it and adds it to the gradient so far. For n pieces that moves n times the whole tensor. `unbind`, `split` and `chunk` are one operator, whose backward
pass joins the gradients of all pieces once: for the 200 steps of a sequence of 16 × 200 × 128 numbers, on one core, `tanh` of each with its
backward pass took 0.19 to 0.29 of the time.

## Example
```python
def forward(self, x, h):
    for t in range(x.shape[1]):
        h = self.cell(x[:, t], h)
    return h
```

## Use instead
```python
def forward(self, x, h):
    for x_t in x.unbind(1):
        h = self.cell(x_t, h)
    return h
```

## Fix safety
The results are the same; gradients are added up in another order where pieces overlap, which `unbind`, `split` and `chunk` cannot do.

## References
- PyTorch, `torch.unbind`: https://docs.pytorch.org/docs/stable/generated/torch.unbind.html
- PyTorch, `torch.split`: https://docs.pytorch.org/docs/stable/generated/torch.split.html
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.joining import function_at
from pyrometer.rules.kernels.patterns.operators import callers_of, calls_per_step, cost_of, on_device
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.value import Kind

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import LineTotal, TreeNode

RULE = declare(
    code="PYR535",
    severity="warning",
    fix_class="exact",
    limits=(
        Limit("min_share", 0.1, "of the time: less is seldom the first thing to change"),
        Limit("min_pieces", 8, "per step: the gradients of fewer are not much more than one of the whole"),
    ),
)

NODES = frozenset(
    f"autograd::engine::evaluate_function: {name}Backward0" for name in ("Select", "Slice", "Narrow")
)
"""Backward passes of one piece, with adding its gradient to those of the others."""

OPERATORS = frozenset(
    f"aten::{name}" for name in ("fill_", "zero_", "zeros", "select_backward", "slice_backward", "add_")
)
"""What they run; it is attributed to the function that took the pieces."""

STAYS = 0.3
"""Of their time at worst: joining the gradients once moves the whole tensor, too."""


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """All of them together, in the function that has the most of what they run."""
    trace = case.trace
    if trace is None or not trace.span_ns:
        return
    nodes = [node for node in trace.call_tree if node.name in NODES]
    spent = sum(node.device_ns if on_device(trace) else node.total_ns for node in nodes)
    pieces = calls_per_step(case, sum(node.calls for node in nodes))
    share = min(1.0, spent / trace.span_ns)
    if share < case.limit(RULE, "min_share") or pieces < case.limit(RULE, "min_pieces"):
        return
    place, taken = _where(case)
    yield RULE.finding(
        message=f"the backward pass of {pieces:,.0f} pieces per step that are taken one by one"
        f"{f' (`{taken}`)' if taken else ''}{spoken(place)} takes {format_percent(share)} of the time: the gradient of each is a tensor as large "
        "as the whole, filled with zeros and added up",
        where=place,
        evidence={"share": share, "pieces_per_step": pieces, "pieces": taken or None},
        links=[f"/trace/call_tree/{trace.call_tree.index(max(nodes, key=_total_ns))}"],
        cost=cost_of(case, share, "time of these backward passes in the trace"),
        gain=untraced(case, share).gain(
            f"removal: the gradients of pieces; at worst {format_percent(STAYS)} of their time stays for joining them once",
            best=1 - 1 / pieces,
            worst=1 - STAYS,
        ),
        confidence="high",
        advice="Take all pieces at once before the loop: `x.unbind(dim)`, or `x.split(size, dim)`, whose backward pass joins the gradients once. Where "
        "the loop goes over time, a ready-made layer (`nn.LSTM`, `nn.GRU`) needs neither.",
        sketch="for x_t in x.unbind(1):  # instead of x[:, t]",
        resource="op:aten::fill_",
    )


def _total_ns(node: TreeNode) -> int:
    return node.total_ns


def _where(case: Case) -> tuple[Place, str]:
    """The line that takes such pieces, and how it is written; else the function in which their gradients are."""
    assert case.trace is not None
    callers: list[LineTotal] = [line for line, _ in callers_of(case.trace, OPERATORS)]
    for line in callers:
        found = function_at(line, case.modules)
        piece = None if found is None else _piece(found[0], found[1])
        if found is not None and piece is not None:
            return place_of(case, line, line=piece.lineno), found[0].source(piece)
    return (place_of(case, callers[0]) if callers else Place()), ""


def _piece(module: Module, function: ast.AST) -> ast.Subscript | None:
    """The first tensor in a function that is indexed where a loop goes round; else the first that is indexed at all."""
    indexed = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and module.value_of(node.value).kind is not Kind.HOST
        and not (isinstance(node.value, ast.Attribute) and node.value.attr == "shape")
    ]
    looped = [node for node in indexed if module.loops_around(node)]
    return next(iter([*looped, *indexed]), None)
