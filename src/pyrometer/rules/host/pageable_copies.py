"""Batches are copied to the device from ordinary, pageable memory.

## What it does
Finds, in a trace, copies to a device from pageable memory that no kernel hides, with their rate and the idle time that
follows because the host had to wait for them.

## Why it costs
The driver cannot read pageable memory directly: it copies into a pinned buffer of its own first, piece by piece, while the
host waits. The rate stays below what the bus carries, and the copy cannot run beside kernels.

## Example
```python
loader = DataLoader(dataset, batch_size=64)
for inputs, targets in loader:
    inputs = inputs.to(device)
```

## Use instead
```python
loader = DataLoader(dataset, batch_size=64, pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to(device, non_blocking=True)
```

## Fix safety
The results are the same. Pinned memory is taken from what the machine can page out: pin batches, not datasets.

## References
- PyTorch, "A guide on good usage of non_blocking and pin_memory()": https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- PyTorch, `torch.utils.data`, "Memory Pinning": https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

from pyrometer.quantity import format_bytes, format_percent, significant
from pyrometer.rules.data.patterns.waiting import loader_rewrite
from pyrometer.rules.host.patterns.copying import copied, copy_cost, copy_gain
from pyrometer.rules.host.patterns.waits import links_of, stalls
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR113",
    severity="warning",
    fix_class="exact",
    lever="pin_memory",
    limits=(
        Limit("min_share", 0.01, "below one percent of a step no measurement can tell it from noise"),
        Limit(
            "min_bytes_per_step", 2**20, "smaller copies cost their launch: see small-host-to-device-copies"
        ),
    ),
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Copies from pageable memory that hold up the step."""
    report = case.trace
    if report is None:
        return
    waited = list(stalls(RULE.code, case))
    for found in copied(case, "H2D", "pageable"):
        kind = found.kind
        per_step = kind.total_bytes / case.num_traced_steps
        idle = sum(stall.idle_ns for stall in waited)
        share = min(1.0, (kind.exposed_ns + idle) / report.span_ns)
        if share < case.limit(RULE, "min_share") or per_step < case.limit(RULE, "min_bytes_per_step"):
            continue
        rate = f", at {significant(kind.gb_per_s)} GB/s" if kind.gb_per_s else ""
        yield RULE.finding(
            message=(
                f"{format_bytes(per_step)}{case.per_step} are copied to the device from pageable memory{rate}{spoken(found.place)}, "
                f"and nothing runs beside it for {format_percent(share)} of the time"
            ),
            where=found.place,
            evidence={
                "bytes_per_step": per_step,
                "gb_per_s": kind.gb_per_s,
                "exposed_ns_per_step": round(kind.exposed_ns / case.num_traced_steps),
                "device_idle_after_ns_per_step": round(idle / case.num_traced_steps),
            },
            links=[
                f"/trace/copies/kinds/{found.row}",
                *(link for stall in waited for link in links_of(stall, report)),
            ],
            cost=copy_cost(
                case, share, "copies from pageable memory beside no kernel, and idle time after them"
            ),
            gain=copy_gain(case, share, "H2D", kind),
            confidence="high",
            advice=(
                "Give the DataLoader `pin_memory=True` and copy with `non_blocking=True`, so that the copy runs at the rate of "
                "the bus and beside kernels."
            ),
            rewrite=loader_rewrite(case, "pin_memory=True"),
            resource="copy:H2D",
        )
