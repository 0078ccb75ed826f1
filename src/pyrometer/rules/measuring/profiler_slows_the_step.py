"""The profiler distorts the step: it makes it much slower.

## What it does
Compares traced with untraced steps of the same run, where a part of the step is short enough for the profiler to show: a
step of long operators that was slower while it was traced was slowed by something else.

## Why it costs
The profiler adds a nearly constant time to every event. Long kernels keep their length, short operators and Python look longer than they
are: shares move towards the host. Measured on a CPU thread with a transformer of 4,100 events and 6 ms per step,
tracing alone took 1.25 times as long, with all options 2.2 times.

## Example
```python
import torch

with torch.profiler.profile(record_shapes=True, with_stack=True, profile_memory=True, with_flops=True) as prof:
    torch.nn.Linear(8, 8)(torch.randn(2, 8))
```

## Use instead
```python
import torch

with torch.profiler.profile(record_shapes=True) as prof:
    torch.nn.Linear(8, 8)(torch.randn(2, 8))
```

## Fix safety
Nothing in the program changes: it is traced again, with fewer options.

## References
- PyTorch documentation, torch.profiler: https://docs.pytorch.org/docs/stable/profiler.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_interval, format_percent, significant
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.trace.capture.record import Capture

RULE = declare(
    code="PYR011",
    severity="info",
    scope="measurement",
    fix_class="exact",
    limits=(
        Limit("min_ratio", 1.5, "below it, shares of the trace are within a third of the true ones"),
        Limit(
            "min_short_share",
            0.1,
            "on a CPU: of the span, in and between short operators; long ones keep their length",
        ),
    ),
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """What tracing cost, and what it means for the shares."""
    capture = case.capture
    ratio = capture.overhead_ratio if capture is not None else None
    least = case.limit(RULE, "min_ratio")
    if capture is None or ratio is None or ratio < least or (capture.overhead_low or ratio) < 1:
        return
    if not _is_believable(case, capture, least):
        return
    within = format_interval(capture.overhead_low, capture.overhead_high)
    yield RULE.finding(
        message=f"under the profiler a step takes {significant(ratio)}× as long ({within}): up to "
        f"{format_percent(1 - 1 / ratio, 2)} of what the trace shows for short operators is the profiler's",
        where=Place(),
        evidence={
            "overhead_ratio": ratio,
            "overhead_low": capture.overhead_low,
            "overhead_high": capture.overhead_high,
            "step_untraced_s": capture.step_untraced_s,
            "step_traced_s": capture.step_traced_s,
            "options": _switched_on(capture),
        },
        links=["/capture/overhead_ratio"],
        confidence="high" if (capture.overhead_low or 0.0) > 1 else "medium",
        advice=_advice(capture),
    )


def _is_believable(case: Case, capture: Capture, least: float) -> bool:
    """Whether it was the profiler: it adds to each event, so that there must be short ones, and to the measured step, too."""
    trace, measured = case.trace, case.measurement
    traced_s = capture.step_traced_s
    if measured is not None and traced_s is not None and traced_s < least * measured.median_s:
        return False
    if trace is None or trace.num_kernels:
        return True
    host = trace.launches.host
    return host.short_ns + host.between_ns >= case.limit(RULE, "min_short_share") * trace.span_ns


def _switched_on(capture: Capture) -> list[str]:
    options = capture.options
    return [name for name in options.__struct_fields__ if getattr(options, name)]


def _advice(capture: Capture) -> str:
    from pyrometer.trace.capture.record import CAPTURE_OPTIONS

    trust = (
        "Take seconds from the measurement; of the trace, trust the order, and the times of long operators"
    )
    on = [option for option in CAPTURE_OPTIONS if getattr(capture.options, option.name)]
    if not on:
        return f"{trust}."
    dear = max(on, key=lambda cost: cost.step_ratio[1])
    return f"{trust}; a capture of your own costs least without {dear.name} (gives {dear.gives})."
