"""Stages of a pipeline are idle.

## What it does
Finds pipelines by which ranks send to which, and compares the share of a step in which stages compute nothing with what the
schedule must cost: (p - 1) / (m + p - 1) for p equal stages and m micro-batches.

## Why it costs
At the start of a step the last stages wait for the first micro-batch, and at its end the first stages wait for gradients. A stage
with more work than the others adds to it in each micro-batch.

## Example
```python
schedule = ScheduleGPipe(stage, n_microbatches=4)
```

## Use instead
More micro-batches of smaller size, an interleaved schedule, and stages of equal cost.
```python
schedule = ScheduleInterleaved1F1B(stages, n_microbatches=16)
```

## Fix safety
No fix is applied. More micro-batches add gradients up in another order; batch normalisation sees smaller batches.

## References
- PyTorch, Pipeline Parallelism: https://docs.pytorch.org/docs/stable/distributed.pipelining.html
- Huang et al., "GPipe": https://arxiv.org/abs/1811.06965
- Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters": https://arxiv.org/abs/2104.04473
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.trace.jobs.job import Pipeline

RULE = declare(
    code="PYR609",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("max_bubble", 0.15, "a schedule with six micro-batches per stage costs about that"),
        Limit("max_excess", 0.1, "transfers and launches add a few percent to the schedule's own bubble"),
        Limit("wanted_bubble", 0.1, "below, twice the micro-batches bring less than smaller batches lose"),
    ),
)


@RULE.in_evidence("job")
def explain(case: Case) -> Findings:
    """Pipelines that stand still longer than they should."""
    for index, pipeline in enumerate(case.job.pipelines if case.job is not None else []):
        if pipeline.bubble <= case.limit(RULE, "max_bubble"):
            continue
        excess = pipeline.bubble - pipeline.theoretical_bubble
        uneven = excess > case.limit(RULE, "max_excess")
        wanted = micro_batches_for(case.limit(RULE, "wanted_bubble"), pipeline.num_stages)
        slowest = max(pipeline.stages, key=lambda stage: stage.compute_ns)
        yield RULE.finding(
            message=(
                f"the stages stand still {format_percent(pipeline.bubble)} of a step; the schedule of "
                f"{counted(pipeline.num_stages, 'stage')} and {counted(pipeline.num_microbatches, 'micro-batch')} costs "
                f"{format_percent(pipeline.theoretical_bubble)}"
            ),
            where=Place(rank=slowest.rank if uneven else None),
            evidence={
                "bubble": pipeline.bubble,
                "theoretical_bubble": pipeline.theoretical_bubble,
                "num_stages": pipeline.num_stages,
                "num_microbatches": pipeline.num_microbatches,
                "slowest_stage": slowest.stage,
            },
            links=[f"/job/pipelines/{index}"],
            cost=Cost(
                seconds_per_step=pipeline.bubble * pipeline.step_ns * 1e-9,
                share=pipeline.bubble,
                method="time without computing, mean of stages",
            ),
            gain=_gain(pipeline, wanted, excess),
            confidence="high",
            advice=_advice(pipeline, wanted, slowest.stage if uneven else None),
            resource="pipeline",
        )


def micro_batches_for(bubble: float, num_stages: int) -> int:
    """Micro-batches with which a plain schedule has at most this bubble.

    >>> micro_batches_for(0.1, 4)
    27
    """
    return math.ceil((num_stages - 1) * (1 - bubble) / bubble)


def _gain(pipeline: Pipeline, wanted: int, excess: float) -> Gain:
    """The same computing in a step whose schedule has the wanted bubble, with the excess as it is, or gone as well."""
    after = (pipeline.num_stages - 1) / (max(wanted, pipeline.num_microbatches) + pipeline.num_stages - 1)
    with_excess = min(after + max(excess, 0.0), 0.99)
    return Gain(
        ratio_low=min(1.0, (1 - pipeline.bubble) / (1 - after)),
        ratio_high=min(1.0, (1 - pipeline.bubble) / (1 - with_excess)),
        method=f"model: {max(wanted, pipeline.num_microbatches)} micro-batches, transfers as they are or free",
    )


def _advice(pipeline: Pipeline, wanted: int, slowest: int | None) -> str:
    parts = []
    if pipeline.num_microbatches < wanted:
        parts.append(
            f"Split the batch into {wanted} micro-batches instead of {pipeline.num_microbatches}, or interleave the stages"
        )
    if slowest is not None:
        parts.append(f"{'take' if parts else 'Take'} layers from stage {slowest}, which computes most")
    return (
        "; ".join(parts) or "Hide the transfers between stages behind computing, with an interleaved schedule"
    ) + "."
