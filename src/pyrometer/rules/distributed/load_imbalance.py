"""Work is unevenly distributed over the ranks.

## What it does
Compares the time in which each rank's device computes, over the same steps of all ranks. It says nothing where the steps of equal ranks differ as much
by chance.

## Why it costs
Every rank waits at the next collective for the one with the most work, so that the time above the mean is lost on all others.

## Example
```python
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_sampler=BatchSampler(sampler, 32, drop_last=False))
```

## Use instead
Give every rank as many tokens or pixels per step, not only as many samples.
```python
sampler = LengthBalancedSampler(lengths, rank=rank, world_size=world_size, tokens_per_batch=16384)
loader = DataLoader(dataset, batch_sampler=sampler)
```

## Fix safety
No fix is applied: which samples share a batch changes.

## References
- PyTorch, Distributed Data Parallel: https://docs.pytorch.org/docs/stable/notes/ddp.html
- PyTorch, torch.utils.data.distributed.DistributedSampler: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.trace.jobs.job import MAX_CHANCE, MIN_GAIN

if TYPE_CHECKING:
    from pyrometer.trace.jobs.job import Job

RULE = declare(
    code="PYR608",
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit("min_imbalance", 1.1, "devices of one kind differ by a few percent in clock alone"),
        Limit("min_share", MIN_GAIN, "less than that of the time is the usual jitter between ranks"),
        Limit(
            "max_chance", MAX_CHANCE, "of some ranks that are alike, one always computes longest by chance"
        ),
    ),
)


@RULE.in_evidence("job")
def explain(case: Case) -> Findings:
    """The rank that computes most, beside the mean."""
    job = case.job
    if job is None or job.compute_imbalance is None or len(job.ranks) < 2 or _stages(job):
        return
    worst = max(job.ranks, key=lambda row: row.compute_ns)
    mean = sum(row.compute_ns for row in job.ranks) / len(job.ranks)
    share = (worst.compute_ns - mean) / max(row.span_ns for row in job.ranks)
    if job.compute_imbalance < case.limit(RULE, "min_imbalance") or share < case.limit(RULE, "min_share"):
        return
    if job.compute_chance is not None and job.compute_chance > case.limit(RULE, "max_chance"):
        return
    more = job.compute_imbalance - 1
    yield RULE.finding(
        message=(
            f"rank {worst.rank} computes {format_percent(more)} longer than the {len(job.ranks)} ranks "
            f"{'here ' if job.missing_ranks else ''}do on average"
        ),
        where=Place(rank=worst.rank),
        evidence={
            "compute_imbalance": job.compute_imbalance,
            "compute_ns": worst.compute_ns,
            "mean_compute_ns": mean,
            "num_ranks": len(job.ranks),
        },
        links=["/job/ranks"],
        cost=case.cost_of(share, "computing of the busiest rank above the mean"),
        gain=Gain(ratio_low=1 - share, ratio_high=1.0, method="bound: all ranks at the mean"),
        confidence="medium",
        advice=(
            "Even out what ranks get: batches by number of tokens or pixels instead of samples, experts and layers by their cost. "
            f"If the work is the same, look at the clock and temperature of rank {worst.rank}'s device."
        ),
        resource=f"straggler:{worst.rank}",
    )


def _stages(job: Job) -> bool:
    """Whether the ranks are stages of pipelines, which are judged as such."""
    return bool(job.pipelines)
