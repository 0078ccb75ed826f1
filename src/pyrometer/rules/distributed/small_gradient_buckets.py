"""Gradients are reduced in many small messages.

## What it does
Counts the all-reduces of a step and their size in a trace; in source text it finds an `all_reduce` per parameter, and a
`bucket_cap_mb` of a few MiB.

## Why it costs
Each message pays a fixed latency, whatever its size; links reach their bandwidth with messages of several MiB only. Many small
ones take longer than a few large ones with the same bytes, and each is a kernel more to launch.

## Example
```python
import torch

for parameter in model.parameters():
    torch.distributed.all_reduce(parameter.grad)
```

## Use instead
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)
```

## Fix safety
No fix is applied: DistributedDataParallel averages gradients, where `all_reduce` alone sums them.

## References
- PyTorch, DistributedDataParallel: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- NVIDIA, nccl-tests, performance of collectives by size: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.advice import Cost, Gain
from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.distributed.patterns.collectives import place_of_collective
from pyrometer.rules.distributed.patterns.wrapping import wrappings
from pyrometer.rules.match import Match, match
from pyrometer.rules.registry import declare
from pyrometer.rules.rule import Limit

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.rules.finding import Finding
    from pyrometer.source.module import Module
    from pyrometer.trace.analysis.collectives import CollectiveGroup

RULE = declare(
    code="PYR602",
    name="small-gradient-buckets",
    doc=__doc__,
    severity="warning",
    fix_class="tolerance",
    lever="bucket_size",
    limits=(
        Limit(
            "max_mean_bytes", 1 << 20, "DistributedDataParallel makes buckets of 25 MiB, the first of 1 MiB"
        ),
        Limit("min_calls_per_step", 8, "fewer messages cost too little latency to matter"),
        Limit("min_share", 0.02, "less than that of the time cannot be told from noise"),
        Limit(
            "min_bucket_mb", 5, "below, most gradients of a layer of 1024 × 1024 fill a bucket by themselves"
        ),
    ),
)

DEFAULT_BUCKET = 25 << 20
REDUCES = ("torch.distributed.all_reduce", "torch.distributed.distributed_c10d.all_reduce")


@RULE.in_source
def find(module: Module) -> Iterator[Match]:
    """One all-reduce per parameter, and small buckets."""
    smallest = module.limit(RULE, "min_bucket_mb")
    for call in wrappings(module):
        size = module.literal(module.keyword(call, "bucket_cap_mb"))
        if isinstance(size, int | float) and 0 < size < smallest:
            yield match(
                call,
                f"buckets of {size} MiB are small",
                advice="Leave `bucket_cap_mb` at 25, or measure larger ones.",
            )
    for call in module.calls(*REDUCES):
        if _per_parameter(module, call) and not module.region(call).test:
            yield match(
                call,
                "each parameter's gradient is reduced in a message of its own, after the whole backward pass",
                advice="Use DistributedDataParallel, which reduces buckets during the backward pass.",
            )


@RULE.in_evidence("trace")
def explain(case: Case) -> Iterator[Finding]:
    """Small all-reduces in a trace."""
    report = case.trace
    if report is None or not report.span_ns:
        return
    for index, group in enumerate(report.collectives):
        per_step = group.num_calls / case.num_traced_steps
        share = group.exposed_ns / report.span_ns
        if _is_small(case, group) and per_step >= case.limit(RULE, "min_calls_per_step"):
            if share < case.limit(RULE, "min_share"):
                continue
            mean, saved = (group.bytes or 0) / group.num_calls, _saved(group, case.num_traced_steps)
            yield RULE.finding(
                message=(
                    f"gradients are reduced in {per_step:.0f} messages of {format_bytes(mean)} per step, which take "
                    f"{format_percent(share)} of the time"
                ),
                where=place_of_collective(group, report),
                evidence={
                    "calls_per_step": per_step,
                    "mean_bytes": mean,
                    "exposed_ns": group.exposed_ns,
                    "shortest_ns": group.min_ns,
                },
                links=[f"/trace/collectives/{index}"],
                cost=Cost(share=share, method="time of these calls in which nothing computes"),
                gain=Gain(
                    ratio_low=1 - min(saved / report.span_ns, share),
                    ratio_high=1.0,
                    method="model: the shortest call is latency, paid once per 25 MiB instead",
                ),
                confidence="medium",
                advice="Reduce in buckets of 25 MiB: by DistributedDataParallel, or by concatenating gradients before `all_reduce`.",
                rewrite="DistributedDataParallel(model, bucket_cap_mb=25)",
                resource="comm",
            )


def _is_small(case: Case, group: CollectiveGroup) -> bool:
    if group.name != "all_reduce" or not group.bytes or not group.num_calls:
        return False
    return group.bytes / group.num_calls < case.limit(RULE, "max_mean_bytes")


def _saved(group: CollectiveGroup, num_steps: int) -> float:
    """Latency, ns, of the messages that larger buckets would not send."""
    needed = num_steps * max(1, -(-(group.bytes or 0) // (num_steps * DEFAULT_BUCKET)))
    return max(0, group.num_calls - needed) * (group.min_ns or 0)


def _per_parameter(module: Module, call: ast.Call) -> bool:
    """Whether a call stands in a loop over parameters and reduces a gradient."""
    of_gradient = any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(call))
    loops = module.loops_around(call)
    if not (of_gradient and loops and isinstance(loops[0], ast.For)):
        return False
    return any(
        isinstance(part, ast.Attribute) and part.attr in {"parameters", "named_parameters"}
        for part in ast.walk(loops[0].iter)
    )
