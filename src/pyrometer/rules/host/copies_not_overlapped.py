"""Copies between host and device run while nothing else does.

## What it does
Finds, in a trace, copies from or to pinned memory that no kernel runs beside, though such copies could.

## Why it costs
A device has engines of its own for copies. A copy on the stream that also computes makes the kernels behind it wait; on a
second stream the next batch arrives while this one is worked on.

## Example
```python
for batch in loader:
    batch = batch.to(device, non_blocking=True)
    loss = model(batch)
```

## Use instead
Fetch the next batch on its own stream while this one is worked on.
```python
copying = torch.cuda.Stream()
for following in loader:
    with torch.cuda.stream(copying):
        following = following.to(device, non_blocking=True)
    loss = model(batch)
    torch.cuda.current_stream().wait_stream(copying)
    following.record_stream(torch.cuda.current_stream())
    batch = following
```

## Fix safety
The results are the same as long as each stream waits for what it reads, and the memory is recorded with `record_stream`.

## References
- PyTorch, CUDA semantics, "CUDA streams" and "Use pinned memory buffers": https://docs.pytorch.org/docs/stable/notes/cuda.html
- NVIDIA, CUDA C++ Best Practices Guide, "Asynchronous and Overlapping Transfers with Computation": https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/
"""

from __future__ import annotations

from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.host.patterns.copying import copied, copy_cost, copy_gain
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR115",
    severity="warning",
    scope="symptom",
    fix_class="exact",
    lever="prefetch_device",
    limits=(Limit("min_share", 0.01, "below one percent of a step no measurement can tell it from noise"),),
)

WORDS = {"H2D": "to the device", "D2H": "to the host"}


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Copies of pinned memory that nothing runs beside."""
    report = case.trace
    for direction, words in WORDS.items():
        for found in copied(case, direction, "pinned"):
            assert report is not None
            kind = found.kind
            share = kind.exposed_ns / report.span_ns
            if share < case.limit(RULE, "min_share"):
                continue
            per_step = kind.total_bytes / case.num_traced_steps
            hidden = 1 - kind.exposed_ns / max(kind.busy_ns, 1)
            yield RULE.finding(
                message=(
                    f"{format_bytes(per_step)}{case.per_step} are copied {words}{spoken(found.place)} while nothing else runs, "
                    f"for {format_percent(share)} of the time; {format_percent(hidden)} of the copying is hidden"
                ),
                where=found.place,
                evidence={"bytes_per_step": per_step, "hidden_share": hidden, "gb_per_s": kind.gb_per_s},
                links=[f"/trace/copies/kinds/{found.row}"],
                cost=copy_cost(case, share, "copies of pinned memory beside no kernel"),
                gain=copy_gain(case, share, direction, kind),
                confidence="high",
                advice=(
                    "Copy the next batch on a stream of its own while this one is worked on, and let the computing stream wait "
                    "for it."
                    if direction == "H2D"
                    else "Copy results on a stream of their own and read them a step later."
                ),
                resource=f"copy:{direction}",
            )
