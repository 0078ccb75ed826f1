"""Ranks wait for communication that does not overlap with computation.

## What it does
Reports the share of a rank's time in which a collective runs and nothing else does. With the traces of all ranks, what is waiting
for a rank that comes late is taken out, since faster communication would not shorten it; where ranks have no trace, the rest may be waiting
for them.

## Why it costs
While gradients or parameters travel in the open, the device computes nothing. With more ranks the share grows, so that each
further device brings less than the one before.

## Example
```python
loss.backward()
for parameter in model.parameters():
    torch.distributed.all_reduce(parameter.grad)
optimizer.step()
```

## Use instead
DistributedDataParallel reduces the gradients of the last layers while those of the first are still computed.
```python
model = DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)
loss = criterion(model(inputs), targets)
loss.backward()
optimizer.step()
```

## Fix safety
No fix is applied. With other buckets the ranks' gradients may be added up in another order, so that they differ in the last
digits; compression of gradients changes more.

## References
- PyTorch, DistributedDataParallel: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- PyTorch, Distributed Data Parallel, "Internal Design": https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.distributed.patterns.collectives import place_of_collective, waited_ns
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.text import listed

if TYPE_CHECKING:
    from pyrometer.trace.records.device import CollectiveGroup
    from pyrometer.trace.records.rank import RankReport

RULE = declare(
    code="PYR601",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="ddp_buckets",
    limits=(
        Limit(
            "min_share",
            0.1,
            "the last bucket of gradients has nothing left to hide behind, so that a few percent stay",
        ),
    ),
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Communication in the open, on the rank that is looked at."""
    report = case.trace
    if report is None or not report.span_ns or not report.collectives:
        return
    exposed, waited = report.breakdown_ns.exposed_comm, waited_ns(case)
    share = max(0, exposed - (waited or 0)) / report.span_ns
    if share < case.limit(RULE, "min_share"):
        return
    worst = report.collectives[0]
    step_s = case.step_s
    missing = case.job.missing_ranks if case.job is not None else []
    yield RULE.finding(
        message=(
            f"communication that nothing hides takes {format_percent(share)} of the time, "
            f"{f'{format_seconds(share * step_s)} per step, ' if step_s is not None else ''}most of it in {worst.name}"
            + (f"; rank {listed(missing)}, without a trace, may be what it waits for" if missing else "")
        ),
        where=place_of_collective(worst, report),
        evidence={
            "exposed_ns": exposed,
            "waited_for_other_ranks_ns": waited,
            "communication_ns": report.communication_ns,
            "overlapped_ns": report.overlapped_communication_ns,
            "collective": worst.name,
            "bytes_per_call": worst.bytes // worst.num_calls
            if worst.bytes is not None and worst.num_calls
            else None,
        },
        links=["/trace/collectives/0", "/trace/breakdown_ns"],
        cost=case.cost_of(
            share,
            "time in which a collective runs and no computing does"
            + ("" if waited is None else ", without waiting for other ranks"),
        ),
        gain=_gain(report, share),
        lever="ddp_buckets" if worst.name == "all_reduce" else None,
        confidence="low" if missing else "high" if waited is not None else "medium",
        advice=f"Trace rank {listed(missing)}, too, before anything else." if missing else _advice(worst),
        resource="comm",
    )


def _gain(report: RankReport, share: float) -> Gain:
    """From all of it behind computing, as far as there is computing that hides none so far, to nothing."""
    free = max(0, report.breakdown_ns.compute - report.overlapped_communication_ns) / report.span_ns
    low = 1 - min(share, free)
    replayed = next((gain for gain in report.recoverable if gain.kind == "collective"), None)
    if replayed is None:
        return Gain(ratio_low=low, ratio_high=1.0, method="bound: as much of it behind computing as there is")
    return Gain(
        ratio_low=max(replayed.ratio_low, low),
        ratio_high=1.0,
        method="what-if: as much of it behind computing as there is",
    )


def _advice(worst: CollectiveGroup) -> str:
    if worst.name == "all_reduce":
        start = "Let DistributedDataParallel reduce gradients during the backward pass; with it already in use, try other bucket sizes"
        return f"{start}, accumulate under `no_sync`, or reduce in bfloat16 by a communication hook."
    if worst.name in {"all_gather", "reduce_scatter"}:
        return "Prefetch the next parameters while the current ones are used, and gather larger groups of layers at once."
    if worst.num_async == 0:
        return f"Start {worst.name} with `async_op=True`, do what does not need its result, and wait for it then."
    return f"Start {worst.name} earlier, beside work that does not need its result."
