"""A table or mask that depends only on sizes and constants is recomputed in every step.

## What it does
Finds statements in code that runs once per step which work on tensors, and whose operands are sizes, constants, settings and buffers:
position tables, causal and banded masks, grids of anchors, normalised adjacency matrices; in an inference what is made of
parameters alone, too. Where the values of some steps were followed, it also knows the lines whose operators computed the same in the
step before. It speaks where their lines take a good
part of the step, by samples of the host's time.

## Why it costs
The result is the same each time. A table of sines of 1,024 positions and 256 channels takes about as long as a linear layer over
them, and a mask is written several times on its way from `arange` to minus infinity.

## Example
```python
class Positions(torch.nn.Module):
    def forward(self, x):
        length, width = x.shape[-2:]
        position = torch.arange(length).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(length, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        return x + table
```

## Use instead
```python
class Positions(torch.nn.Module):
    def __init__(self, longest, width):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.shape[-2]]
```
Of a free function, `functools.lru_cache` over its sizes and the device does the same.

## Fix safety
No fix is applied: the values are the same; the table takes memory, and a buffer moves with the module to its device and dtype.

## References
- PyTorch, `Module.register_buffer`: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
- Python, `functools.lru_cache`: https://docs.python.org/3/library/functools.html#functools.lru_cache
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.quantity import Seconds, format_percent
from pyrometer.rules.host.patterns.fixed import Fixed
from pyrometer.rules.host.patterns.spending import MOST_LINES, is_certain, removal
from pyrometer.rules.joining import is_same_file, module_of
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLine

RULE = declare(
    code="PYR128",
    severity="warning",
    fix_class="exact",
    limits=(Limit("min_share", 0.1, "of the step: less does not repay a buffer"),),
)


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """Such statements, where their lines take time; together, since one change mends them all."""
    assert case.host is not None
    lines = {id(line): (line, line.own_s) for module in case.modules for line in _lines(case, module)}
    lines = {id(line): (line, spent_s) for line, spent_s in _followed(case)} | lines
    spent = sorted(lines.values(), key=lambda each: -each[1])
    share = case.host.share(sum(spent_s for _, spent_s in spent))
    if not spent or share < case.limit(RULE, "min_share") or not is_certain(case.host, share):
        return
    dearest = spent[0][0]
    place, function = place_of(case, dearest.where), dearest.where.function
    module = module_of(dearest.where.file, case.modules)
    text = "" if module is None else one_line(module.lines[(dearest.where.line or 1) - 1].strip())
    yield RULE.finding(
        message=f"the same tensors are recomputed in each step{spoken(place)}, which takes {format_percent(share)} of it, "
        f"most in `{text}`",
        where=place,
        evidence={"share": share, "lines": [line.where.text for line, _ in spent[:MOST_LINES]]},
        links=[f"/host/lines/{case.host.lines.index(dearest)}"],
        cost=case.cost_of(share, "samples of the host's time in these lines"),
        gain=removal(case.host, share, stays=0.15),
        confidence="high",
        advice=f"Compute it once: in `__init__`, for the largest size, with `self.register_buffer(…, persistent=False)`, and take a slice of it in "
        f"{f'`{function}`' if function else 'the step'}; or put it into a function of the sizes and the device under `functools.lru_cache`.",
    )


def _followed(case: Case) -> Iterator[tuple[HostLine, Seconds]]:
    """Lines whose operators are known to compute what the step before did, of nothing that a step is given; with what that takes."""
    assert case.host is not None
    facts = case.dataflow.repeated if case.dataflow is not None else []
    for fact in facts:
        for line in case.host.lines:
            same = line.where.line == fact.where.line and is_same_file(
                line.where.file or "", fact.where.file or ""
            )
            if same and fact.since == "step before":
                yield line, line.own_s * fact.of_line


def _lines(case: Case, module: Module) -> Iterator[HostLine]:
    """Lines of a file with statements whose result is the same in each step, most time first."""
    assert case.host is not None
    here = [line for line in case.host.lines if module_of(line.where.file, case.modules) is module]
    if not here or not module.imports_torch:
        return
    trained = case.program is None or case.program.kind != "inference"
    fixed = Fixed(module, trained=trained, ran=frozenset(line.where.line or 0 for line in here))
    numbers: set[int] = set()
    for function in module.nodes(ast.FunctionDef):
        if function.name != "__init__":
            for statement in fixed.statements(function):
                last = statement.iter if isinstance(statement, ast.For) else statement
                numbers.update(range(statement.lineno, (last.end_lineno or statement.lineno) + 1))
    yield from (line for line in here if line.where.line in numbers)
