"""A Python loop walks over a dimension of a tensor and launches small operations for each element.

## What it does
Finds `for row in x:` and `for i in range(x.shape[0]): … x[i] …` with tensor operations in the body, in code that runs once
per step, where the rounds do not depend on each other. With samples of the host's time, or a trace, it says how many calls the
loop makes and what they cost.

## Why it costs
Every operation costs a dispatch on the host and a launch on the device, however few numbers it works on. Standardising 400
rows one by one took about 200 times as long as all of them at once on a CPU core.

## Example
```python
import torch


class Normalise(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(x.shape[0]):
            row = x[i]
            rows.append((row - row.mean()) / (row.std() + 1e-6))
        return torch.stack(rows)
```

## Use instead
```python
import torch


class Normalise(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True) + 1e-6)
```

## Fix safety
No fix is applied: reductions over whole tensors may round differently, and only the program knows what the rounds share.
`torch.vmap` turns the body of a loop into one call over all elements.

## References
- PyTorch, `torch.vmap`: https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
- PyTorch, Broadcasting semantics: https://docs.pytorch.org/docs/stable/notes/broadcasting.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.host.patterns.loop_runs import loop_finding, loop_runs
from pyrometer.rules.host.patterns.loops import ElementLoop, all_rounds, element_loop
from pyrometer.rules.host.patterns.reads import hot_place
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.text import one_line

RULE = declare(
    code="PYR109",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_calls_per_step", 100, "fewer short calls per step cost less than a millisecond"),
        Limit("min_share", 0.05, "of the time: less does not repay rewriting the loop"),
    ),
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Such loops in hot code."""
    if not module.imports_torch:
        return
    told: set[ast.AST] = set()
    for loop in all_rounds(module):
        if not told.isdisjoint(module.ancestors(loop.node)):
            continue  # The loop around is told: what is done for all of its elements at once takes this one along.
        place = loop.node.body[0] if isinstance(loop.node, ast.For) else loop.node
        why = hot_place(module, place)  # asked first: it costs less than the values
        found = None if why is None else element_loop(module, loop)
        if why is not None and found is not None:
            told.add(loop.node)
            message = f"the loop runs {_shown(found)} for each element of `{found.tensor}`"
            yield match(found.loop.target, message, advice=advise(found), confidence="medium", hot=why.why)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Such loops, by what their rounds took."""
    for run in loop_runs(case, case.limit(RULE, "min_share")):
        few = run.calls is not None and run.calls < case.limit(RULE, "min_calls_per_step")
        if run.element is None or few or run.operators + run.by_python < run.elsewhere:
            continue
        what = f"works on one element of `{run.element.tensor}` at a time"
        yield loop_finding(RULE, case, run, what=what, advice=advise(run.element))


@RULE.in_evidence("trace")
def explain_trace(case: Case) -> Findings:
    """The same of a trace alone: functions that issue very many short calls per step, from a loop that the source shows."""
    if case.host is None:
        yield from explain(case)


def advise(loop: ElementLoop) -> str:
    """What to do about one loop."""
    return (
        f"Do it for all elements of `{loop.tensor}` at once: give reductions a `dim=`, let the rest broadcast, or pass the "
        "body to `torch.vmap`."
    )


def _shown(loop: ElementLoop) -> str:
    first = f"`{one_line(loop.operations[0])}`"
    return first if len(loop.operations) == 1 else f"{first} and more"
