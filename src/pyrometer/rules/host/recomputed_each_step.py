"""A function gets and returns the same values in every step.

## What it does
Finds functions and modules of the program's that were given the same arguments and returned the same results, bit by bit, in every
step that was looked at, although the inputs of these steps differed; and that take at least a twentieth of the step, by an
experiment: in some steps the place returned what it had returned before.

## Why it costs
The work is done anew in each step for a result that is already known: tables of positions, masks, grids of anchors, encoded
prompts and queries, weights that are put together from others.

## Example
```python
def grid(height, width):
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([rows, columns]).float().flatten(1).T


class Head(torch.nn.Module):
    def forward(self, x):
        return x.flatten(2).transpose(1, 2) + grid(*x.shape[-2:]).sum(1, keepdim=True)
```

## Use instead
```python
@functools.lru_cache(maxsize=8)
def grid(height, width):
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([rows, columns]).float().flatten(1).T


class Head(torch.nn.Module):
    def forward(self, x):
        return x.flatten(2).transpose(1, 2) + grid(*x.shape[-2:]).sum(1, keepdim=True)
```
Of a method, keep the result in a buffer (`self.register_buffer(…, persistent=False)`), which moves with the module.

## Fix safety
No fix is applied: what else decides the result (weights that are loaded later, a setting, the time) did not change in the steps
that were looked at, and may elsewhere. What writes into the result must write into a copy.

## References
- Python, `functools.lru_cache`: https://docs.python.org/3/library/functools.html#functools.lru_cache
- PyTorch, `Module.register_buffer`: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent
from pyrometer.rules.bounded import holds, name_of
from pyrometer.rules.joining import function_at
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.bench.ceiling import Ceiling

RULE = declare(
    code="PYR130",
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit(
            "min_gain",
            0.05,
            "of the step, at the end of the interval that promises less: less does not repay a cache",
        ),
    ),
)


@RULE.in_evidence("ceilings")
def explain(case: Case) -> Findings:
    """Places that could have returned what they returned before, and what the step takes where they do."""
    for number, ceiling in enumerate(case.ceilings or []):
        constant = ceiling.what != "loader" and ceiling.same_inputs and ceiling.same_results
        if not constant or ceiling.ratio_high > 1 - case.limit(RULE, "min_gain"):
            continue
        name, saved = name_of(ceiling), 1 - ceiling.ratio
        times = "" if ceiling.calls_per_step <= 1 else f", {ceiling.calls_per_step:.3g} times in each"
        yield RULE.finding(
            message=f"{name} gets and returns the same values in each step{times}: "
            f"without it a step takes {format_percent(saved)} less",
            where=place_of(case, ceiling.where, line=_line(case, ceiling)),
            evidence={
                "ratio_without_it": ceiling.ratio,
                "num_pairs": ceiling.pairs,
                "calls_per_step": ceiling.calls_per_step,
            },
            links=[f"/ceilings/{number}"],
            cost=case.cost_of(saved, f"paired steps with and without {name}"),
            gain=Gain(
                ratio_low=ceiling.ratio_low,
                ratio_high=ceiling.ratio_high,
                measured=True,
                method="measured: in some steps it returned what it had returned before",
            ),
            confidence="high",
            advice=f"Compute it once: keep the result of {name} in a buffer of the module, or put `functools.lru_cache` around the function, "
            "as long as nothing else decides what it returns.",
        )


def _line(case: Case, ceiling: Ceiling) -> int | None:
    """The line that takes the most within the place, else its first statement; never the `def` itself."""
    lines = case.host.lines if case.host is not None else []
    dearest = max(
        (line for line in lines if holds(ceiling, line.where)), key=lambda line: line.own_s, default=None
    )
    if dearest is not None:
        return dearest.where.line
    function = function_at(ceiling.where, case.modules)
    if function is None:
        return None
    body = function[1].body
    return body[min(ast.get_docstring(function[1]) is not None, len(body) - 1)].lineno
