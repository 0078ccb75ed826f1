"""One graph is differentiated again and again in a loop.

## What it does
Finds loops with a backward pass in each round that keeps the graph (`retain_graph=True`) made before the loop: one pass per output,
dimension or row. It speaks where the loop takes a good part of the step.

## Why it costs
Each pass walks the whole graph on operators of one right-hand side. All of them at once are one walk on operators with one dimension
more: twelve passes of a small network took eleven times as long as a closed form.

## Example
```python
slopes = torch.zeros_like(x)
for axis in range(y.shape[1]):
    (slope,) = torch.autograd.grad(y[:, axis].sum(), x, retain_graph=True)
    slopes[:, axis] = slope[:, axis]
```

## Use instead
```python
directions = torch.eye(y.shape[1])[:, None].expand(-1, *y.shape)
(slopes,) = torch.autograd.grad(y, x, directions, is_grads_batched=True)
slopes = slopes.diagonal(dim1=0, dim2=2)
```

## Fix safety
No fix is applied: batched passes hold the gradients of all rounds at once, and need operators that `torch.vmap` knows.

## References
- PyTorch, torch.autograd.grad: https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
- PyTorch, Jacobians, Hessians and more: https://docs.pytorch.org/tutorials/intermediate/jacobians_hessians.html
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.carried_graphs import carried_graphs, keeps_graph
from pyrometer.rules.host.patterns.loop_runs import node_of
from pyrometer.rules.host.patterns.spending import is_certain, removal
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLoop

RULE = declare(
    code="PYR132",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),
        Limit("min_rounds", 3, "each time the loop is entered: two losses of one graph are no loop"),
    ),
)


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """Such loops, by their share of the sampled steps."""
    profile = case.host
    assert profile is not None
    for number, loop in enumerate(profile.loops):
        share, rounds = profile.share(loop.total_s), _rounds(loop)
        if share < case.limit(RULE, "min_share") or not is_certain(profile, share):
            continue
        if rounds < case.limit(RULE, "min_rounds") or not _differentiates(case, loop):
            continue
        place = place_of(case, loop.where)
        yield RULE.finding(
            message=f"the loop over `{one_line(loop.over)}`{spoken(place)} differentiates one graph {rounds:,.0f} times, and takes "
            f"{format_percent(share)} of the step",
            where=place,
            evidence={"share": share, "rounds": rounds},
            links=[f"/host/loops/{number}"],
            cost=case.cost_of(share, "samples of the host's time in the rounds of the loop"),
            gain=removal(profile, share, stays=max(0.4, 1 / rounds)),
            confidence="high",
            advice="Differentiate once: by a closed form where there is one, by `torch.autograd.grad(…, is_grads_batched=True)` or `torch.func.jacrev` "
            "and `jacfwd` for all directions, by one random direction where an estimate will do, or on the sum where only that is used.",
        )


def _rounds(loop: HostLoop) -> float:
    """Each time the loop is entered."""
    return (loop.rounds_per_step or 0.0) / max(loop.entered_per_step or 1.0, 1.0)


def _differentiates(case: Case, loop: HostLoop) -> bool:
    """Whether a round keeps a graph that it did not make: no round that made its own needs to keep it, unless one carries it on."""
    found = node_of(case, loop)
    if found is None:
        return False
    module, node = found
    if not isinstance(node, ast.For | ast.While) or any(
        graph.call in set(ast.walk(node)) for graph in carried_graphs(module)
    ):
        return False
    return any(keeps_graph(module, call) for part in node.body for call in ast.walk(part))
