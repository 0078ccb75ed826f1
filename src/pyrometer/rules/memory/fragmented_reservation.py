"""The allocator holds far more of the device's memory than tensors ever use.

## What it does
Compares the peak of what torch's caching allocator reserved with the peak of what tensors held, from the memory profile
or a trace with `profile_memory`. It speaks of a difference that is both large and a large part of the reservation, which
is what free pieces between long-lived blocks look like. A reserved figure alone is no leak and no fault.

## Why it costs
What is reserved and unused is lost for larger batches and for other processes, and a request can fail though enough is
free in all, because no single piece is large enough.

## Example
```python
import torch

for batch in loader:
    step(batch)
print(torch.cuda.memory_reserved() - torch.cuda.memory_allocated())
```

## Use instead
```python
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch

for batch in loader:
    step(batch)
```

## Fix safety
Exact: the same results. Expandable segments do not go with sharing CUDA tensors between processes in older versions, nor
with every platform; torch warns and goes on without them.

## References
- PyTorch notes, CUDA semantics, "Optimizing memory usage with PYTORCH_CUDA_ALLOC_CONF":
  https://pytorch.org/docs/stable/notes/cuda.html
- PyTorch documentation, Understanding CUDA Memory Usage: https://pytorch.org/docs/stable/torch_cuda_memory.html
"""

from __future__ import annotations

from typing import NamedTuple

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import Bytes, format_bytes, format_percent
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR207",
    severity="warning",
    fix_class="exact",
    lever="expandable_segments",
    limits=(
        Limit(
            "min_unused_share",
            0.2,
            "rounding to segments of 2 and 20 MiB and a cache for the next step explain less",
        ),
        Limit("min_unused_bytes", 512 * 2**20, "a smaller gap holds no batch more"),
    ),
)

SETTING = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


class Gap(NamedTuple):
    """What is reserved, and what of it is used."""

    device: str
    reserved: Bytes
    allocated: Bytes
    links: tuple[str, ...]

    @property
    def unused(self) -> Bytes:
        """Reserved and in no tensor."""
        return self.reserved - self.allocated


@RULE.in_evidence("memory")
def in_profile(case: Case) -> Findings:
    """As the allocator's own counters tell."""
    assert case.memory is not None
    levels = case.memory.levels
    if levels.reserved_peak_bytes is not None and levels.allocated_peak_bytes is not None:
        names = ("reserved_peak_bytes", "allocated_peak_bytes")
        links = tuple(f"/memory/levels/{name}" for name in names)
        yield from _judge(
            case,
            Gap(case.memory.device, levels.reserved_peak_bytes, levels.allocated_peak_bytes, links),
        )


@RULE.in_evidence("snapshot")
def in_snapshot(case: Case) -> Findings:
    """As the allocator's snapshot tells, of the device with the highest peak."""
    assert case.snapshot is not None
    snapshot = case.snapshot
    links = ("/snapshot/peak_reserved_bytes", "/snapshot/peak_bytes")
    yield from _judge(
        case, Gap(f"cuda:{snapshot.device}", snapshot.peak_reserved_bytes, snapshot.peak_bytes, links)
    )


@RULE.in_evidence("trace")
def in_trace(case: Case) -> Findings:
    """As the allocations of a trace tell, where the profile does not."""
    assert case.trace is not None
    if case.memory is not None and case.memory.levels.reserved_peak_bytes is not None:
        return
    for number, device in enumerate(case.trace.memory.devices):
        if device.peak_reserved_bytes is not None and not device.is_relative:
            links = (f"/trace/memory/devices/{number}",)
            yield from _judge(case, Gap(device.device, device.peak_reserved_bytes, device.peak_bytes, links))


def _judge(case: Case, gap: Gap) -> Findings:
    share = gap.unused / max(gap.reserved, 1)
    if share < case.limit(RULE, "min_unused_share") or gap.unused < case.limit(RULE, "min_unused_bytes"):
        return
    is_set = _is_set(case)
    yield RULE.finding(
        message=f"The allocator reserved {format_bytes(gap.reserved)} of {gap.device}, of which "
        f"{format_bytes(gap.unused)} ({format_percent(share, 2)}) were never in use at one time",
        where=Place(),
        evidence={
            "reserved_peak_bytes": gap.reserved,
            "allocated_peak_bytes": gap.allocated,
            "unused_share": round(share, 4),
            "expandable_segments": is_set,
        },
        links=list(gap.links),
        cost=Cost(bytes=gap.unused, method="peak of reserved less peak of allocated memory"),
        gain=None
        if is_set
        else Gain(saves_bytes=gap.unused, method="bound: all of the gap, if all of it is fragmentation"),
        lever=None if is_set else RULE.lever,
        confidence="medium",
        advice="Expandable segments are on already: allocate what lives long first, and pad inputs to a few sizes."
        if is_set
        else "Set expandable segments before torch is imported; then free pieces are joined instead of kept apart.",
        rewrite=None if is_set else SETTING,
        resource="peak:cache",
    )


def _is_set(case: Case) -> bool:
    settings = case.environment.settings if case.environment is not None else {}
    recorded = case.snapshot.settings.text if case.snapshot is not None else None
    return "expandable_segments:True" in (recorded or "") or any(
        "expandable_segments:True" in value for name, value in settings.items() if name.endswith("ALLOC_CONF")
    )
