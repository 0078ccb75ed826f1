"""Gradients are reduced in every micro-batch of an accumulation.

## What it does
Finds loops that run several backward passes of a DistributedDataParallel model before one optimizer step, without `no_sync`; and
in a trace, steps that reduce more bytes than the model has gradients.

## Why it costs
Only the sum over all micro-batches is needed. Every backward pass but the last one sends all gradients for nothing: with four
micro-batches three quarters of the traffic.

## Example
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model)
for number, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / accumulate
    loss.backward()
    if (number + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
```python
import contextlib

from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model)
for number, (inputs, targets) in enumerate(loader):
    is_last = (number + 1) % accumulate == 0
    with contextlib.nullcontext() if is_last else model.no_sync():
        loss = criterion(model(inputs), targets) / accumulate
        loss.backward()
    if is_last:
        optimizer.step()
        optimizer.zero_grad()
```

## Fix safety
No fix is applied. Gradients are added up in another order, so that they differ in the last digits; the forward pass must be
inside of `no_sync` too.

## References
- PyTorch, DistributedDataParallel.no_sync: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- PyTorch, Performance Tuning Guide, "Skip unnecessary all-reduce": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import format_bytes, significant
from pyrometer.rules.distributed.patterns.accumulation import accumulations
from pyrometer.rules.distributed.patterns.wrapping import distributed_wrappers, gradient_bytes, wrappings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR603",
    severity="warning",
    fix_class="tolerance",
    lever="ddp_no_sync",
    limits=(
        Limit(
            "min_times",
            1.8,
            "buffers and the map of used parameters travel too, but are small beside gradients",
        ),
    ),
)

SWITCHES = frozenset({"no_sync", "require_backward_grad_sync", "set_requires_gradient_sync"})
"""What says that the file chooses itself when gradients are reduced."""
ADVICE = "Run all micro-batches but the last of each step, forward and backward, under `model.no_sync()`."


@RULE.in_source
def find(module: Module) -> Matches:
    """Accumulating loops in a file that wraps its model and never switches the reduction off."""
    if not any(True for _ in wrappings(module)) or _switches(module):
        return
    for accumulation in accumulations(module):
        yield match(
            accumulation.backward,
            f"gradients are reduced in each round of the loop in line {accumulation.loop.lineno}, and used in some",
            advice=ADVICE,
            confidence="medium",
        )


def _switches(module: Module) -> bool:
    """Whether the file names one of the switches, or enters `model.join()`."""
    named = {node.attr for node in module.nodes(ast.Attribute)} | {
        node.arg for node in module.nodes(ast.keyword)
    }
    joined = (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "join"
        for call in (item.context_expr for item in module.nodes(ast.withitem))
    )
    return not SWITCHES.isdisjoint(named) or any(joined)


@RULE.in_evidence("trace", "program")
def explain(case: Case) -> Findings:
    """Steps that reduce their gradients more than once."""
    report, program = case.trace, case.program
    if report is None or program is None or not distributed_wrappers(case) or not report.span_ns:
        return
    needed = gradient_bytes(program)
    reduces = [group for group in report.collectives if group.name == "all_reduce" and group.bytes]
    per_step = sum(group.bytes or 0 for group in reduces) / case.num_traced_steps
    times = per_step / needed if needed else 0.0
    if times < case.limit(RULE, "min_times"):
        return
    share = sum(group.exposed_ns for group in reduces) / report.span_ns
    spared = share * (1 - 1 / times)
    where = reduces[0].where
    yield RULE.finding(
        message=(
            f"each step reduces {format_bytes(per_step)}, {significant(times)} times what the model has in gradients"
        ),
        where=Place(
            file=where.file, line=where.line, function=where.function, op="all_reduce", rank=report.rank
        ),
        evidence={
            "bytes_per_step": per_step,
            "gradient_bytes": needed,
            "times": times,
            "exposed_share": share,
        },
        links=["/trace/collectives", "/program/wrappers"],
        cost=Cost(share=spared, method="exposed time of the reductions beyond one per step"),
        gain=Gain(
            ratio_low=1 - spared, ratio_high=1.0, method="removal of the reductions beyond one per step"
        ),
        confidence="medium",
        advice=ADVICE,
        resource="comm",
    )
