"""An expression computes much more than it keeps.

## What it does
Finds expressions for which torch has an operator that does less work: a full sort to keep a few values, a one-hot matrix times a
table, an inverse times a matrix, a whole product for its trace or diagonal, a product with a diagonal matrix, a softmax before
argmax, all pairs of differences to sum their squares, all pairs of rows multiplied element by element for their sums or cosines. It tells them in code that runs once per step, and wherever a trace shows
that they take time.

## Why it costs
On one CPU core, new over old time: the best 10 of 50,000 by `topk` instead of `sort` 0.01 (of 100: 0.29), the first by `amax`
0.001; `embedding` instead of a one-hot product 0.001 for 5,000 rows and 0.21 for 10; `linalg.solve` instead of `inverse` 0.25
with one right-hand side and 0.80 with as many as rows; a trace of a product without the product 0.12 at 512×512; scaling
instead of a diagonal matrix 0.01; argmax without softmax 0.39; `cdist` instead of all differences 0.01, and 0.1 in its exact mode; a matrix product instead of all products of rows 0.01 for
256 rows and 0.12 for 128, and of `cosine_similarity` of all pairs, with its backward pass, 0.004 and 0.05.

## Example
```python
import torch


class Best(torch.nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.sort(scores, dim=1, descending=True).values[:, :10]
```

## Use instead
```python
import torch


class Best(torch.nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.topk(scores, 10, dim=1).values
```

## Fix safety
The same up to rounding. Among equal values, sort and topk may pick different indices; softmax may make two different values equal.
`cdist` computes by a matrix product from 25 rows on, which loses digits for points that lie close together:
`compute_mode="donot_use_mm_for_euclid_dist"` keeps them.

## References
- PyTorch, torch.topk: https://docs.pytorch.org/docs/stable/generated/torch.topk.html
- PyTorch, torch.linalg.solve: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html
- PyTorch, torch.cdist: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import sentence
from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.rounds import operators_below
from pyrometer.rules.kernels.patterns.better import Better
from pyrometer.rules.kernels.patterns.operators import callers_of, cost_of, index_of, same_function
from pyrometer.rules.kernels.patterns.wasteful_patterns import PATTERNS, Pattern
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.memory.patterns.spent import whole_share
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.edit import Edit, replace
from pyrometer.source.rewriting import rewritten

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import LineTotal

RULE = declare(
    code="PYR515",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.02, "below a fiftieth of the step another operator cannot be told from noise"),
    ),
)


NOTHING = 0.05
"""Left of the time at best, below which the better operator does work of a lower order: with larger sizes still less."""


class Found(NamedTuple):
    """One place with its pattern."""

    module: Module
    pattern: Pattern
    better: Better


def wastes(module: Module) -> Iterator[Found]:
    """Every place in a file, in the order of the text."""
    if not module.imports_torch:
        return
    hits = [Found(module, pattern, one) for pattern in PATTERNS for one in pattern.search(module)]
    yield from sorted(hits, key=lambda hit: (hit.better.node.lineno, hit.better.node.col_offset))


@RULE.in_source
def find(module: Module) -> Matches:
    """Waste in code that runs once per step."""
    for hit in wastes(module):
        node = hit.better.node
        why = module.hot(node)
        region = module.region(node)
        if why is None or module.is_rare(node) or region.test or region.scripted:
            continue
        yield match(
            node,
            f"this {hit.pattern.what}",
            advice=_advice(hit),
            fix=_fix(hit),
            confidence="high" if hit.better.text else "medium",
            hot=why.why,
        )


def _advice(hit: Found) -> str:
    return (
        f"Write `{hit.better.text}` instead of `{hit.module.source(hit.better.node)}`: {hit.pattern.why}."
        if hit.better.text
        else sentence(hit.pattern.why)
    )


def _edits(hit: Found) -> list[Edit]:
    return [replace(hit.module, hit.better.node, hit.better.text)] if hit.better.text else []


def _fix(hit: Found) -> Fix | None:
    edits = _edits(hit)
    title = f"Write {hit.better.text}"
    return Fix(fix_class=hit.pattern.fix_class, title=title, edits=edits) if edits else None


@RULE.in_evidence("trace", "source")
def explain(case: Case) -> Findings:
    """Waste in functions in which the trace shows its operators."""
    if case.trace is None:
        return
    for hit in (one for module in case.modules for one in wastes(module)):
        line, share = _taken(case, hit)
        if line is None or share < case.limit(RULE, "min_share"):
            continue
        node, (best, worst) = hit.better.node, hit.pattern.left
        op = max(hit.pattern.ops, key=lambda name: any(top_op.name == name for top_op in line.top_ops))
        place = Place(file=hit.module.path, line=node.lineno, function=line.function, op=op)
        known = untraced(
            case, max(share, whole_share(case, hit.pattern.ops, line), _with_backward(case, hit, line))
        )
        yield RULE.finding(
            message=f"The program {hit.pattern.what}{spoken(place)}, and that takes {format_percent(share)} of the time.",
            where=place,
            evidence={"share": share, "expression": hit.module.source(node)},
            links=[index for index in [index_of(case.trace, hit.pattern.ops)] if index is not None],
            cost=cost_of(case, share, f"time of {op} in this function"),
            gain=known.gain(
                "bound: the better operator took between these shares of the time on one core, by size; at best none where it "
                "does work of a lower order",
                best=1 if best < NOTHING else 1 - best,
                worst=1 - worst,
            ),
            fix_class=hit.pattern.fix_class,
            confidence="high",
            advice=_advice(hit),
            rewrite=rewritten(hit.module, _edits(hit)),
            resource=f"op:{op}",
        )


def _with_backward(case: Case, hit: Found, line: LineTotal) -> float:
    """The part of the function that its pattern is of the operators, with as much of the function's backward pass."""
    assert case.trace is not None
    operators = operators_below(case.trace, line, line.function)
    whole_ns = sum(node.self_ns for node in operators)
    own_ns = sum(node.self_ns for node in operators if node.name in hit.pattern.ops)
    return 0.0 if not whole_ns else min(1.0, own_ns / whole_ns * line.self_ns / max(case.trace.span_ns, 1))


def _taken(case: Case, hit: Found) -> tuple[LineTotal | None, float]:
    """The function around a place, and what the operators of its pattern take in it."""
    trace = case.trace
    if trace is None:
        return None, 0.0
    for line, ns in callers_of(trace, hit.pattern.ops):
        if same_function(case, line, hit.module, hit.better.node.lineno):
            return line, min(1.0, ns / max(trace.span_ns, 1))
    return None, 0.0
