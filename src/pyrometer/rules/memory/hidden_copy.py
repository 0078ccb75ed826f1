"""A tensor is copied in the hot path where a view or nothing would do.

## What it does
Finds in hot code: an index that lists consecutive positions (`x[[0, 1, 2]]`, `x[torch.arange(n)]`), a cast to a wider
dtype that the next call casts back. From a trace it finds copies that the user's
functions ask for (`contiguous`, `clone`, `reshape` of what is not contiguous, casts, `repeat`) and that take a notable
share of the step. From the memory profile it carries copies that were left out on trial without changing a bit.

## Why it costs
A copy reads and writes every element and computes nothing. On two CPU cores, making 8 MiB contiguous after a transpose took
1.4 ms, and copying the same bytes in order 0.3 ms; indexing 4 MiB by a tensor of positions took 5.5 ms.

## Example
```python
import torch


class Head(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, [0, 1, 2, 3]].double().float()
```

## Use instead
```python
import torch


class Head(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 0:4].float()
```

## Fix safety
Semantic in general: a view shares memory with its source, so writing into one changes the other. What the memory profile
tried gave the same results to the last bit on these inputs.

## References
- PyTorch documentation, Tensor Views: https://pytorch.org/docs/stable/tensor_view.html
- PyTorch documentation, torch.Tensor.contiguous: https://pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html
"""

from __future__ import annotations

from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.match import Matches, match
from pyrometer.rules.memory.patterns.copies import CAUSES, asked_at, needless_copies
from pyrometer.rules.memory.patterns.peak import MIN_PEAK, is_large, of_advice
from pyrometer.rules.memory.patterns.spent import operators
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced

RULE = declare(
    code="PYR213",
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit(
            "min_share", 0.05, "a copy often makes the next operator faster, so a smaller one pays for itself"
        ),
        MIN_PEAK,
    ),
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Copies that are needless by their text alone."""
    if not module.imports_torch:
        return
    for copy in needless_copies(module):
        hot, region = module.hot(copy.node), module.region(copy.node)
        if hot is None or region.compiled or region.scripted or region.test or module.is_rare(copy.node):
            continue
        advice = f"Write `{copy.instead}`, where nothing is written into the result in place."
        yield match(
            copy.node,
            f"`{module.source(copy.node)}` {copy.fact}{hot.during}",
            advice=advice,
            confidence="medium",
            hot=hot.why,
        )


@RULE.in_evidence("trace", "source")
def in_trace(case: Case) -> Findings:
    """Copies that take a notable share of the step, where the source shows who asks for them."""
    for spent in operators(case):
        cause = CAUSES.get(spent.name)
        if cause is None or spent.share < case.limit(RULE, "min_share"):
            continue
        places = asked_at(spent, case)
        if not places:
            continue
        where = places[0]
        others = [f"{place.file}:{place.line}" for place in places[1:]]
        among = f" (or line {', '.join(other.rpartition(':')[2] for other in others)})" if others else ""
        yield RULE.finding(
            message=f"{cause.what} in {where.function or 'a function'} takes {format_percent(spent.share, 2)} of the step, "
            f"{spent.calls_per_step:.3g} times{case.per_step}{among}",
            where=where,
            evidence={
                "share": round(spent.share, 4),
                "calls_per_step": spent.calls_per_step,
                "operator": spent.name,
                "other_lines": others,
            },
            links=[f"/trace/call_tree/{spent.node}"],
            cost=case.cost_of(spent.share, "time of the operator and of what it calls, in the trace"),
            gain=untraced(case, spent.share).gain(
                "removal of the copies; at worst whoever reads the view loses as much, or half of the clones or casts are needed",
                worst=cause.sure,
            ),
            confidence="medium",
            advice=cause.advice,
            resource=f"op:{spent.name}:{where.file}:{where.line}",
        )


@RULE.in_evidence("memory")
def in_profile(case: Case) -> Findings:
    """Copies that hold the peak, and that the program was tried without."""
    memory = case.memory
    assert memory is not None
    if not is_large(case, RULE):
        return
    for given in given_advice(case.memory, "/memory", "views-instead-of-copies", "one-dtype"):
        yield of_advice(
            RULE,
            case,
            given,
            "without the copies",
            message=f"Unnecessary copies hold {format_bytes(given.advice.saves_bytes)} of the peak of "
            f"{format_bytes(memory.peak_bytes)}",
            confidence="high",
            resource=f"copy:{given.place.file}:{given.place.line}",
        )
