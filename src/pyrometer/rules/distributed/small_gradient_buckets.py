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
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import counted, format_bytes, format_percent, format_seconds
from pyrometer.rules.distributed.patterns.collectives import place_of_collective, waited_ns
from pyrometer.rules.distributed.patterns.wrapping import wrappings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

if TYPE_CHECKING:
    from pyrometer.trace.records.device import CollectiveGroup
    from pyrometer.trace.records.rank import RankReport

RULE = declare(
    code="PYR602",
    severity="warning",
    fix_class="tolerance",
    lever="ddp_buckets",
    limits=(
        Limit(
            "max_mean_bytes", 1 << 20, "DistributedDataParallel makes buckets of 25 MiB, the first of 1 MiB"
        ),
        Limit(
            "max_median_s", 100e-6, "where no sizes are known: a message of 1 MiB takes about that over PCIe"
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
def find(module: Module) -> Matches:
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
def explain(case: Case) -> Findings:
    """Small all-reduces in a trace, with the time in which the host issues one after another."""
    report = case.trace
    if report is None or not report.span_ns or not _trains(report):
        return
    steps, issuing, waited = case.num_traced_steps, report.idle.between_collectives_ns, waited_ns(case) or 0
    for index, group in enumerate(report.collectives):
        per_step = group.num_calls / steps
        if not _is_small(case, group) or per_step < case.limit(RULE, "min_calls_per_step"):
            continue
        share = (max(0, group.exposed_ns - waited) + issuing) / report.span_ns
        if share < case.limit(RULE, "min_share"):
            continue
        yield RULE.finding(
            message=_message(case, group, issuing, share),
            where=place_of_collective(group, report),
            evidence={
                "calls_per_step": per_step,
                "mean_bytes": group.bytes / group.num_calls if group.bytes else None,
                "communication_ns": group.total_ns,
                "exposed_ns": group.exposed_ns,
                "waited_for_other_ranks_ns": waited or None,
                "idle_between_ns": issuing,
                "median_ns": group.median_ns,
                "shortest_ns": group.min_ns,
            },
            links=[f"/trace/collectives/{index}", "/trace/idle/groups"],
            cost=case.cost_of(
                share, "time of these calls in which nothing computes, and idle time between them"
            ),
            gain=Gain(
                ratio_low=1 - share,
                ratio_high=1 - min((_latency_ns(group, steps) + issuing) / 2 / report.span_ns, share),
                method="model: at best all of it behind computing; at worst buckets spare half of the latency, which is the "
                "shortest call, and of the time between calls",
            ),
            confidence="medium",
            advice=(
                "Bucket them and overlap them: DistributedDataParallel reduces buckets of 25 MiB while the backward pass still "
                "computes. In a loop of your own, join gradients before `all_reduce` and start it with `async_op=True`."
            ),
            sketch="model = DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)",
            resource="comm",
        )


def _trains(report: RankReport) -> bool:
    """Whether there are gradients: all-reduces within a forward pass alone, as of tensor parallelism, are no buckets."""
    return any(phase.name in {"backward", "optimizer"} for phase in report.phases.phases)


def _message(case: Case, group: CollectiveGroup, issuing: int, share: float) -> str:
    """Number, size, time, and what of it is in the open."""
    number = case.num_traced_steps
    total = f" ({format_seconds(group.total_ns * 1e-9)} in {counted(number, 'step')})" if number > 1 else ""
    size = f" of {format_bytes(group.bytes / group.num_calls)}" if group.bytes else ""
    hidden = group.overlapped_ns / group.total_ns if group.total_ns else 0.0
    bare = "all of it" if hidden < 0.001 else format_percent(1 - hidden)
    between = (
        f", and the device waits {format_seconds(issuing / number * 1e-9)} for the next ones"
        if issuing
        else ""
    )
    return (
        f"{group.num_calls / number:,.0f} all-reduces{size}{case.per_step} take {format_seconds(group.total_ns / number * 1e-9)}{total}, "
        f"{bare} in the open{between}: {format_percent(share)} of the time"
    )


def _is_small(case: Case, group: CollectiveGroup) -> bool:
    """Whether most messages are bound by latency: by their mean size, or by their median time where no size is known."""
    if group.name != "all_reduce" or not group.num_calls:
        return False
    if group.bytes:
        return group.bytes / group.num_calls < case.limit(RULE, "max_mean_bytes")
    return group.median_ns is not None and group.median_ns * 1e-9 < case.limit(RULE, "max_median_s")


def _latency_ns(group: CollectiveGroup, num_steps: int) -> float:
    """Latency of the messages that larger buckets would not send."""
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
