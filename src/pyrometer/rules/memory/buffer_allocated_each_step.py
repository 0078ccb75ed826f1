"""A buffer is allocated again and again where one would do.

## What it does
Finds large tensors of constant size and value that hot code makes anew, and results that a loop grows by joining, so that
everything so far is copied for each new piece; in the text of a plain `x = torch.cat([x, y])` it leaves them to
`cat-in-loop`. In a trace it finds the time that joining takes, and how many times over a step allocates what it holds at
its peak.

## Why it costs
Growing a result from n pieces copies n²/2 pieces instead of n. On two CPU cores, growing 100 pieces of 64 KiB with
`torch.cat` took 26 ms, writing them into a preallocated tensor 0.5 ms. A tensor of a million consecutive integers took
0.4 ms to make.

## Example
```python
import torch


class Masked(torch.nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(1024, 1024, device=scores.device)
        return scores * mask.tril()
```

## Use instead
```python
import torch


class Masked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(1024, 1024).tril(), persistent=False)

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores * self.mask
```

## Fix safety
Exact without gradients. With gradients collect the pieces in a list and join them once with `torch.stack`, which gives
the same values and gradients. A constant that is made once must not be written into.

## References
- PyTorch documentation, torch.stack: https://pytorch.org/docs/stable/generated/torch.stack.html
- PyTorch tutorial, Performance Tuning Guide: https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_bytes, format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.joining import function_at, module_of
from pyrometer.rules.kernels.cat_in_loop import growths
from pyrometer.rules.kernels.patterns.growing import collected
from pyrometer.rules.match import Matches, match
from pyrometer.rules.memory.patterns.buffers import Grown, constants, grown
from pyrometer.rules.memory.patterns.peak import MIN_PEAK, is_large
from pyrometer.rules.memory.patterns.spent import Spent, has_device, operators
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.rewriting import rewritten

if TYPE_CHECKING:
    from pyrometer.trace.records.memory import AllocationSite

RULE = declare(
    code="PYR215",
    severity="warning",
    scope="symptom",
    fix_class="exact",
    lever="preallocate",
    limits=(
        Limit("min_share", 0.05, "joining the pieces once costs something too; below this nothing is won"),
        Limit("min_turnover", 4, "a step that joins its pieces once allocates its peak about twice"),
        Limit("min_elements", 65_536, "smaller tensors come from the allocator's cache in a microsecond"),
        MIN_PEAK,
    ),
)

OPERATORS = frozenset(
    ["aten::cat", "aten::stack", "aten::concat", "aten::concatenate", "aten::hstack", "aten::vstack"]
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Results that grow by copies, and large constants that are made anew."""
    if not module.imports_torch:
        return
    told = {id(growth.call) for growth in growths(module)}  # by cat-in-loop, in the same words
    for one in grown(module):
        if id(one.call) in told:
            continue
        hot, region = module.hot(one.call), module.region(one.call)
        if (
            hot is not None
            and not (region.compiled or region.scripted or region.test)
            and not module.is_rare(one.call)
        ):
            yield match(
                one.call,
                f"`{one.name}` is copied into a larger tensor for each new piece in the loop of line {one.loop.lineno}",
                advice=_advice(one),
                hot=hot.why,
            )
    for call, elements in constants(module):
        hot, region = module.hot(call), module.region(call)
        if hot is None or elements < module.limit(RULE, "min_elements") or module.is_rare(call):
            continue
        if not (region.compiled or region.scripted or region.test):
            yield match(
                call,
                f"`{module.source(call)}` makes the same {elements:,} elements anew{hot.during}",
                advice="Make it once, before the loop or in __init__ with register_buffer, and do not write into it.",
                confidence="medium",
                hot=hot.why,
            )


@RULE.in_evidence("trace")
def in_trace(case: Case) -> Findings:
    """Functions that spend their time on growing a result."""
    for spent in operators(case):
        if spent.name not in OPERATORS or spent.share < case.limit(RULE, "min_share"):
            continue
        site, source = _site(spent, case), _grown_in(spent, case)
        turnover = site.turnover if site is not None and site.turnover is not None else 0.0
        if turnover >= case.limit(RULE, "min_turnover") or (source is not None and site is None):
            yield _finding(spent, case, site, source)


@RULE.in_evidence("memory", "source")
def in_profile(case: Case) -> Findings:
    """Growing results that hold the peak, where no trace tells of them."""
    memory = case.memory
    assert memory is not None
    if case.trace is not None or not is_large(case, RULE):
        return
    for given in given_advice(case.memory, "/memory", "preallocate"):
        module = module_of(given.place.file, case.modules)
        source = (
            next((way for way in grown(module) if way.call.lineno == given.place.line), None)
            if module
            else None
        )
        if source is None:
            continue
        yield RULE.finding(
            message=f"`{source.name}` and its larger copy are alive at once: {format_bytes(given.advice.saves_bytes)} of the peak of "
            f"{format_bytes(memory.peak_bytes)}",
            where=given.place,
            evidence={"peak_bytes": memory.peak_bytes, "saves_bytes": given.advice.saves_bytes},
            links=[given.link],
            cost=Cost(
                bytes=given.advice.saves_bytes,
                method="peak less that of the same step with one preallocated tensor",
            ),
            gain=given.advice.gain,
            confidence="high",
            advice=_advice(source),
            rewrite=None if module is None else rewritten(module, collected(module, source.call)),
            resource="op:aten::cat",
        )


def _finding(spent: Spent, case: Case, site: AllocationSite | None, source: Grown | None) -> Finding:
    trace, step_s = case.trace, case.step_s
    assert trace is not None
    function = function_at(spent.function, case.modules)
    where = spent.function
    if function is not None and source is not None:
        where = Place(
            file=function[0].path, line=source.call.lineno, function=spent.function.function, op=spent.name
        )
    rehearsed = next(
        (
            given
            for given in given_advice(case.memory, "/memory", "preallocate")
            if source is None or given.place.line == where.line
        ),
        None,
    )
    per_step = site.churn_bytes_per_step if site is not None else None
    churn = f" and allocate {format_bytes(per_step)} that go again at once" if per_step else ""
    needed, share = _needed_share(site), untraced(case, spent.share)
    return RULE.finding(
        message=f"{counted(spent.calls_per_step, 'join')}{case.per_step} take {format_percent(spent.share, 2)} of the time{churn}",
        where=where,
        evidence={
            "share": round(spent.share, 4),
            "calls_per_step": spent.calls_per_step,
            "churn_bytes_per_step": per_step,
            "turnover": site.turnover if site is not None else None,
        },
        links=[
            f"/trace/call_tree/{spent.node}",
            *([f"/trace/memory/sites/{trace.memory.sites.index(site)}"] if site is not None else []),
            *([rehearsed.link] if rehearsed is not None else []),
        ],
        cost=Cost(
            seconds_per_step=spent.share * step_s if step_s is not None else None,
            share=spent.share,
            bytes=rehearsed.advice.saves_bytes if rehearsed is not None else None,
            method="time of the joining operator in the trace",
        ),
        gain=Gain(
            ratio_low=1 - share.most,
            ratio_high=1.0 if has_device(trace) and source is None else 1 - share.least * (1 - needed) / 2,
            saves_bytes=rehearsed.advice.saves_bytes if rehearsed is not None else None,
            method="removal of the joins; at the wide end each piece is still copied once, and half of the time is cost per call, which stays",
        ),
        fix_class="exact",
        confidence="high" if source is not None else "medium",
        advice=_advice(source),
        rewrite=None
        if source is None or function is None
        else rewritten(function[0], collected(function[0], source.call)),
        resource=f"op:{spent.name}",
    )


def _needed_share(site: AllocationSite | None) -> float:
    """Of the bytes that were joined, those that must be copied even if each piece is copied once: two of the largest."""
    if site is None or not site.turnover or not site.churn_bytes_per_step:
        return 0.5
    return min(1.0, 1 / site.turnover)


def _site(spent: Spent, case: Case) -> AllocationSite | None:
    """What the function allocates in that operator."""
    assert case.trace is not None
    place = (spent.function.file, spent.function.line)
    return next(
        (
            site
            for site in case.trace.memory.sites
            if site.where.op in OPERATORS and (site.where.file, site.where.line) == place
        ),
        None,
    )


def _grown_in(spent: Spent, case: Case) -> Grown | None:
    found = function_at(spent.function, case.modules)
    if found is None:
        return None
    module, function = found
    return next((one for one in grown(module) if module.function_of(one.call) is function), None)


def _advice(one: Grown | None) -> str:
    if one is None:
        return "Collect the pieces in a list and join them once after the loop, or write them into a preallocated tensor."
    return (
        f"Collect `{one.pieces}` in a list and join the list once after the loop, or make `{one.name}` in its full size before "
        "the loop and write each piece into its place."
    )
