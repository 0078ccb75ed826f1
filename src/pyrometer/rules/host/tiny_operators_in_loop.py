"""A loop calls short operators for each element, and takes a good part of the step.

## What it does
Takes the loops and comprehensions of the user's in which samples of the host's time were found, and speaks where one with many
rounds takes a good part of the step and spends it in calls of torch that are mostly short: in helper functions, methods and
modules that it calls, too. It says what the loop goes over and how many rounds a step has.

## Why it costs
Every operator costs some microseconds of dispatch, however few numbers it works on, and each call of a module as much again in
Python.

## Example
```python
class Trees(torch.nn.Module):
    def forward(self, x):
        return torch.cat([torch.sigmoid(gate(x)) for gate in self.gates], dim=1)
```

## Use instead
```python
class Trees(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(self.gates(x))  # one torch.nn.Linear with a row for each gate
```
`torch.vmap` runs a function of one element on all of them; `torch.func.stack_module_state` stacks the weights of equal modules for it.

## Fix safety
No fix is applied: operators on whole tensors may round differently, and only the program knows what the rounds share.

## References
- PyTorch, `torch.vmap`: https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
- PyTorch, Model ensembling: https://docs.pytorch.org/tutorials/intermediate/ensembling.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.loops import element_loops
from pyrometer.rules.host.patterns.prefixes import prefixes
from pyrometer.rules.host.patterns.walks import Walk, node_of, walk_finding, walks
from pyrometer.rules.registry import declare
from pyrometer.rules.rule import Limit

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.rules.finding import Finding

RULE = declare(
    code="PYR126",
    name="tiny-operators-in-loop",
    doc=__doc__,
    severity="warning",
    fix_class="tolerance",
    lever="compile",
    limits=(
        Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),
        Limit(
            "min_operators", 0.5, "of the loop's time: where Python takes more of it, it is what to look at"
        ),
        Limit(
            "max_round_s",
            2e-4,
            "a round of some ten short operators; longer ones do work that is worth a call",
        ),
        Limit(
            "max_op_s",
            2e-5,
            "of the mean operator of the function under the profiler, for longer rounds: some times what dispatch costs",
        ),
    ),
)

ALL_AT_ONCE = (
    "Do it for all elements at once: stack them, give reductions a `dim=`, let the rest broadcast, or pass the body to `torch.vmap`; where "
    "each round calls a module of its own, stack their weights (`torch.func.stack_module_state`). Else compile what the loop calls."
)
ONE_AFTER_ANOTHER = (
    "The rounds depend on each other: do before the loop, for all of them, what does not (products with inputs, masks, constants), use the "
    "ready-made layer where there is one (`nn.LSTM`, `nn.GRU`, `torch.cumsum`), and compile the rest."
)


@RULE.in_evidence("host")
def explain(case: Case) -> Iterator[Finding]:
    """Loops that are mostly short operators."""
    for walk in walks(case, case.limit(RULE, "min_share")):
        if (
            walk.operators + walk.elsewhere < case.limit(RULE, "min_operators")
            or walk.operators < walk.elsewhere
        ):
            continue
        if not _is_short(case, walk) and not _goes_over_tensor(case, walk):
            continue
        if _repeats_prefix(case, walk):
            continue  # a rule of its own knows why
        carried = _hands_on(case, walk)
        yield walk_finding(
            RULE,
            case,
            walk,
            what="calls short operators",
            stays=0.6 if carried else 0.25,
            advice=ONE_AFTER_ANOTHER if carried else ALL_AT_ONCE,
        )


def _is_short(case: Case, walk: Walk) -> bool:
    """Whether the rounds are short, or made of operators that are."""
    rounds, traced = walk.loop.rounds_per_step, walk.traced
    if not rounds:
        return False  # they may be layers
    if walk.loop.total_s <= case.limit(RULE, "max_round_s") * rounds:
        return True
    return traced is not None and 0 < traced.self_ns * 1e-9 <= case.limit(RULE, "max_op_s") * traced.num_ops


def _goes_over_tensor(case: Case, walk: Walk) -> bool:
    """Whether the source shows a loop over the elements of a tensor whose rounds do not depend on each other."""
    found = node_of(case, walk.loop)
    return found is not None and any(loop.loop.node is found[1] for loop in element_loops(found[0]))


def _repeats_prefix(case: Case, walk: Walk) -> bool:
    """Whether the rounds compute again all that those before did."""
    found = node_of(case, walk.loop)
    return found is not None and any(prefix.loop is found[1] for prefix in prefixes(found[0]))


def _hands_on(case: Case, walk: Walk) -> bool:
    """Whether a round reads a name before it gives it a value, so that it is the one of the round before."""
    found = node_of(case, walk.loop)
    if found is None or not isinstance(found[1], ast.For | ast.While):
        return False
    names = [
        [node for node in ast.walk(statement) if isinstance(node, ast.Name)] for statement in found[1].body
    ]
    given = {name.id for part in names for name in part if isinstance(name.ctx, ast.Store)}
    for part in names:
        if any(isinstance(name.ctx, ast.Load) and name.id in given for name in part):
            return True
        given -= {name.id for name in part if isinstance(name.ctx, ast.Store)}
    return False
