"""A Python loop walks over a dimension of a tensor and launches small operations for each element.

## What it does
Finds `for row in x:` and `for i in range(x.shape[0]): … x[i] …` with tensor operations in the body, in code that runs once
per step, where the rounds do not depend on each other. With a trace it says how many calls the loop makes and what they cost.

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
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.host.patterns.loops import ElementLoop, all_rounds, element_loop, element_loops
from pyrometer.rules.host.patterns.reads import hot_place
from pyrometer.rules.host.patterns.rounds import rounds_of
from pyrometer.rules.host.patterns.starvation import starvation
from pyrometer.rules.joining import function_at
from pyrometer.rules.match import Match, match
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.registry import declare
from pyrometer.rules.rule import Limit
from pyrometer.rules.untraced import untraced
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.source.module import Module
    from pyrometer.trace.program.call_sites import CallSite

RULE = declare(
    code="PYR109",
    name="python-loop-over-dimension",
    doc=__doc__,
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_calls_per_step", 100, "fewer short calls per step cost less than a millisecond"),
        Limit("min_share", 0.05, "of the time: less does not repay rewriting the loop"),
    ),
)


@RULE.in_source
def find(module: Module) -> Iterator[Match]:
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


@RULE.in_evidence("trace")
def explain(case: Case) -> Iterator[Finding]:
    """Functions that issue very many short calls per step, from a loop that the source shows."""
    report = case.trace
    if report is None or not report.span_ns:
        return
    device = report.launches.device
    sites = device.sites if device is not None else report.launches.host.sites
    base = "/trace/launches/device/sites" if device is not None else "/trace/launches/host/sites"
    for index, site in enumerate(sites):
        per_step = site.calls / case.num_traced_steps
        found = function_at(site.where, case.modules)
        if found is None or per_step < case.limit(RULE, "min_calls_per_step"):
            continue
        module, function = found
        loops = [loop for loop in element_loops(module) if module.function_of(loop.loop.node) is function]
        least, most = shares(case, site)
        if loops and most >= case.limit(RULE, "min_share"):
            longest = max(loops, key=lambda loop: len(loop.operations))
            yield _finding(case, site, longest, (least, most), f"{base}/{index}")


def shares(case: Case, site: CallSite) -> tuple[float, float]:
    """Share of the span that the loop's short calls take for certain, and that all of its rounds but one take."""
    report = case.trace
    assert report is not None
    starved = starvation(case)
    if starved is not None and report.launches.device is not None:
        launches = report.launches.device
        waits = starved.share * site.calls / max(launches.num_work, 1)
        return site.total_ns / report.span_ns, min(1.0, site.total_ns / report.span_ns + waits)
    rounds = rounds_of(report, site.where, site.where.function)
    if rounds is not None:
        gone = (1 - 1 / rounds.per_call) / report.span_ns
        return min(1.0, rounds.short_ns * gone), min(1.0, rounds.total_ns * gone)
    place = (site.where.file, site.where.line)
    own = sum(line.self_ns for line in report.top_lines if (line.file, line.line) == place) / report.span_ns
    short = site.total_ns / report.span_ns
    return short, min(1.0, max(own, short))


def advise(loop: ElementLoop) -> str:
    """What to do about one loop."""
    return (
        f"Do it for all elements of `{loop.tensor}` at once: give reductions a `dim=`, let the rest broadcast, or pass the "
        "body to `torch.vmap`."
    )


def _finding(case: Case, site: CallSite, loop: ElementLoop, share: tuple[float, float], link: str) -> Finding:
    place = place_of(case, site.where, line=loop.loop.lineno)
    least, most = share
    per_step = site.calls / case.num_traced_steps
    return RULE.finding(
        message=(
            f"the loop over `{loop.tensor}`{spoken(place)} issues {per_step:,.0f} short calls per step, mostly {site.name}, "
            f"and takes {format_percent(most)} of the time"
        ),
        where=place,
        evidence={"short_calls_per_step": per_step, "operations": list(loop.operations[:5])},
        links=[link],
        cost=case.cost_of(
            most, "trace: time of the loop's rounds, or of its function, as a share of the span"
        ),
        gain=Gain(
            ratio_low=1 - untraced(case, most, short=True).most,
            ratio_high=1 - untraced(case, least, short=True).least,
            method="removal of all rounds but one; at worst calls of 10 µs and more and moving the elements stay",
        ),
        confidence="high",
        advice=advise(loop),
        resource="launch",
    )


def _shown(loop: ElementLoop) -> str:
    first = f"`{one_line(loop.operations[0])}`"
    return first if len(loop.operations) == 1 else f"{first} and more"
