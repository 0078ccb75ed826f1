"""Collectives move data more slowly than the links allow.

## What it does
Takes the bus bandwidth of large messages while data really moves, that is of the rank that waited least, and compares it with the
fastest call of the same collective in the same group, with the same collective in other groups whose ranks lie alike, and with
NVLink's bandwidth where all ranks are on one machine whose devices are known to have it.

## Why it costs
Gradients and parameters take longer than they need to, and what computing cannot hide lengthens each step.

## Example
```python
os.environ["NCCL_P2P_DISABLE"] = "1"
torch.distributed.init_process_group("nccl")
```

## Use instead
See in the log which transport and which topology NCCL found, and let it use the fastest.
```python
os.environ["NCCL_DEBUG"] = "INFO"
torch.distributed.init_process_group("nccl")
```

## Fix safety
No fix is applied: the cause lies in the environment or in the machine. Another algorithm may add up in another order.

## References
- NVIDIA, nccl-tests, bus bandwidth: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
- NVIDIA, NCCL environment variables: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import format_bytes, format_percent, format_rate
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.trace.jobs.job import Job, JobCollective

RULE = declare(
    code="PYR610",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    limits=(
        Limit("min_bytes", 16 << 20, "smaller messages are bound by latency"),
        Limit("min_calls", 5, "of fewer calls the fastest may be a stray"),
        Limit("min_of_fastest", 0.5, "calls of one size on links of their own differ by a tenth or two"),
        Limit(
            "min_of_equals", 0.6, "groups that lie alike, over links of one kind, differ by a tenth or two"
        ),
        Limit("min_of_link", 0.4, "NCCL reaches seven to nine tenths of NVLink with large messages"),
        Limit("min_share", 0.02, "less than that of the time cannot be told from noise"),
    ),
)

NVLINK = (
    (re.compile(r"B200|GB200"), 900e9),
    (re.compile(r"H100 80GB HBM3|H100.SXM|H200|GH200"), 450e9),
    (re.compile(r"A100-SXM"), 300e9),
    (re.compile(r"V100-SXM"), 150e9),
)
"""Bytes per second in one direction, of all links of a device; from the vendor's data sheets."""


BESIDE = "what the groups beside it reach"


class Reachable(NamedTuple):
    """A bandwidth that could be reached, and why."""

    rate: float
    least: float
    why: str


@RULE.in_evidence("job")
def explain(case: Case) -> Findings:
    """Large collectives far below what is known to be possible."""
    job = case.job
    span = sum(row.span_ns for row in job.ranks) if job is not None else 0
    if job is None or not span:
        return
    for index, collective in enumerate(job.collectives):
        if (collective.bytes or 0) < case.limit(RULE, "min_bytes") or not collective.bus_bandwidth:
            continue
        if collective.num_matched < case.limit(RULE, "min_calls"):
            continue
        slow = [
            reachable
            for reachable in _reachable(case, job, collective)
            if collective.bus_bandwidth < reachable.least * reachable.rate
        ]
        share = max(0, collective.duration_ns - collective.wait_ns) / span
        if not slow or share < case.limit(RULE, "min_share"):
            continue
        best = max(slow, key=lambda reachable: reachable.rate)
        among = f" among ranks {collective.group_ranks}" if best.why == BESIDE else ""
        spared = share * (1 - collective.bus_bandwidth / best.rate)
        yield RULE.finding(
            message=(
                f"{collective.name} of {format_bytes(collective.bytes)}{among} moves {format_rate(collective.bus_bandwidth, 'B/s')}, "
                f"{format_percent(collective.bus_bandwidth / best.rate)} of {best.why}"
            ),
            where=Place(op=collective.name),
            evidence={
                "group_ranks": collective.group_ranks,
                "bus_bandwidth": collective.bus_bandwidth,
                "reachable": best.rate,
                "bytes_per_call": collective.bytes,
                "group_size": collective.group_size,
                "num_calls": collective.num_matched,
            },
            links=[f"/job/collectives/{index}"],
            cost=Cost(
                share=spared, method="time of the calls, without waiting, beyond what that bandwidth takes"
            ),
            gain=Gain(
                ratio_low=1 - spared,
                ratio_high=1.0,
                method=f"bound: {best.why}, and nothing of it hidden so far",
            ),
            confidence="medium",
            advice=(
                "Run with NCCL_DEBUG=INFO and see which transport it chose; compare with all_reduce_perf of nccl-tests on the same "
                "devices; look for NCCL settings in the environment, other jobs on the links, and tensors that are not contiguous."
            ),
            resource="comm",
        )


def _reachable(case: Case, job: Job, collective: JobCollective) -> Iterator[Reachable]:
    fastest = max(
        (
            group.best_bus_bandwidth or 0.0
            for report in case.ranks
            for group in report.collectives
            if (group.name, group.group, group.dtype) == (collective.name, collective.group, collective.dtype)
        ),
        default=0.0,
    )
    if fastest:
        yield Reachable(fastest, case.limit(RULE, "min_of_fastest"), "its fastest call")
    if collective.bus_bandwidth_of_equals:
        least = case.limit(RULE, "min_of_equals")
        yield Reachable(collective.bus_bandwidth_of_equals, least, BESIDE)
    hosts = {row.host for row in job.ranks}
    if len(hosts) == 1 and None not in hosts:
        names = {name for report in case.ranks for name in report.devices}
        rates = [next((rate for known, rate in NVLINK if known.search(name)), 0.0) for name in names]
        slowest = min(rates, default=0.0)
        if slowest:
            yield Reachable(slowest, case.limit(RULE, "min_of_link"), "NVLink's bandwidth")
