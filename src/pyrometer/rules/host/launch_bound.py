"""The device waits for the host to launch its next short kernel.

## What it does
Adds up, in a trace, the idle time in which the host was on its way to the next launch (in operators, in Python, in runtime
calls), and speaks when most of it is in gaps up to 1 ms that follow kernels shorter than 10 µs: the device is done before the
next launch can arrive.

## Why it costs
Launching from eager Python takes the host several microseconds per operator, however small the operator is. Kernels that are
shorter than that leave the device idle between any two of them, and a faster device changes nothing.

## Example
```python
for batch in requests:
    answers = model(batch.to(device))
```

## Use instead
Launch all kernels at once as one graph, make the batch larger, or let the compiler fuse them.
```python
model = torch.compile(model, mode="reduce-overhead")
for batch in requests:
    answers = model(batch.to(device))
```

## Fix safety
A CUDA graph replays the same kernels and gives the same results, as long as shapes stay the same and nothing in the model
decides on the host. Fused kernels may round differently.

## References
- PyTorch, CUDA semantics, "CUDA Graphs": https://docs.pytorch.org/docs/stable/notes/cuda.html
- PyTorch, `torch.compile`, mode "reduce-overhead": https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

from __future__ import annotations

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.host.patterns.starvation import short_share, starvation
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR110",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="cuda_graphs",
    limits=(
        Limit(
            "min_share", 0.1, "idle time below a tenth of the step does not repay another way of launching"
        ),
        Limit(
            "min_short_share",
            0.5,
            "of the waiting: where less of it follows kernels below 10 µs it is not launching as such that holds the device up",
        ),
    ),
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Idle time between short kernels."""
    report, starved = case.trace, starvation(case)
    if report is None or starved is None or report.launches.device is None:
        return
    launches, share = report.launches.device, starved.share * starved.after_short
    if share < case.limit(RULE, "min_share"):
        return
    if starved.after_short < case.limit(RULE, "min_short_share"):
        return
    call = format_seconds(launches.call.median_ns * 1e-9) if launches.call else "–"
    kernel = format_seconds(launches.kernel.median_ns * 1e-9) if launches.kernel else "–"
    overhead = next((recoverable for recoverable in report.recoverable if recoverable.kind == "launch"), None)
    low = 1 - share
    yield RULE.finding(
        message=(
            f"for {format_percent(share)} of the time the device has finished a kernel below 10 µs and waits for the next "
            f"launch (a kernel takes {kernel}, the call that launches it {call}, at the median)"
        ),
        where=place_of(case, launches.sites[0].where) if launches.sites else Place(),
        evidence={
            "waiting_share": starved.share,
            "waiting_share_traced": starved.traced_share,
            "after_short_share": starved.after_short,
            "short_kernel_share": short_share(report),
            "num_gaps": starved.num_gaps,
            "launches_per_step": launches.launches_per_step,
            "host_meanwhile": [activity.name or activity.kind for activity in starved.doing],
        },
        links=["/trace/launches/device", "/trace/idle/groups"],
        cost=case.cost_of(
            share,
            "trace: idle time of the device after short kernels, on the way to the next launch"
            + (", bounded by the untraced step" if starved.checked else ""),
        ),
        gain=Gain(
            ratio_low=low,
            ratio_high=max(low, overhead.ratio_high) if overhead is not None else 1.0,
            method="bound: no waiting for launches; worst case trace what-if without launch overhead",
        ),
        confidence=starved.confidence,
        advice=(
            'Capture the step in a CUDA graph (`torch.compile(model, mode="reduce-overhead")` does it), or give each launch '
            "more to do with a larger batch."
        ),
        sketch='model = torch.compile(model, mode="reduce-overhead")',
        resource="launch",
    )
