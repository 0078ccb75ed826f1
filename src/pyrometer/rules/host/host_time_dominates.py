"""The host takes longer than the device, which waits for it.

## What it does
Speaks when, in a trace, a device waits a good part of the time for a host that is busy with Python, operators or runtime
calls, mostly after kernels that are long enough: it is not launching as such, but what the host does between the launches.

## Why it costs
The device can only work on what it was given. Python that prepares inputs, walks over parameters, formats logs or creates
objects between two launches is time in which the device stands idle once it has caught up.

## Example
```python
for batch in loader:
    weights = [priority(sample) for sample in batch.samples]
    loss = model(batch.x.to(device), torch.tensor(weights, device=device))
```

## Use instead
Do it in the loader's workers, on whole tensors, or while the device is busy with the batch before.
```python
for batch in loader:  # the dataset gives each sample its priority
    loss = model(batch.x.to(device), batch.weights.to(device))
```

## Fix safety
No fix is applied: what the host does is the program's own.

## References
- PyTorch, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, CUDA semantics, "Asynchronous execution": https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.starvation import starvation
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport

RULE = declare(
    code="PYR116",
    severity="warning",
    scope="symptom",
    fix_class="semantic",
    limits=(
        Limit(
            "min_share",
            0.15,
            "below that the device is busy enough that its own work is the better place to look",
        ),
        Limit(
            "max_short_share",
            0.5,
            "of the waiting: where more of it follows kernels below 10 µs, launching itself is what limits: see launch-bound",
        ),
    ),
)


MOVE = (
    "Move what the host does between launches out of the step: into loader workers, onto whole tensors, or behind the "
    "device's work on the batch before."
)
COMPILE = (
    "Give the host fewer operators to issue: compile the model, which fuses them and issues the rest without Python, capture "
    "it in a CUDA graph, or use larger batches."
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Idle time of a device while the host is busy between long kernels."""
    report, starved = case.trace, starvation(case)
    if report is None or starved is None:
        return
    if starved.share < case.limit(RULE, "min_share"):
        return
    if starved.after_short >= case.limit(RULE, "max_short_share"):
        return
    place = _place(case, report)
    parts, span = report.breakdown_ns, report.span_ns
    issues = starved.doing[0].kind in {"operator", "runtime"} if starved.doing else False
    most = ", ".join(f"{activity.name or activity.kind}" for activity in starved.doing)
    yield RULE.finding(
        message=(
            f"the device waits for the host for {format_percent(starved.share)} of the time"
            f"{f', mostly while it runs {most}' if most else ''}{spoken(place)}"
        ),
        where=place,
        evidence={
            "waiting_share": starved.share,
            "waiting_share_traced": starved.traced_share,
            "python_share": parts.other / span,
            "operator_share": parts.host / span,
            "runtime_share": parts.runtime / span,
            "host_meanwhile": [activity.name or activity.kind for activity in starved.doing],
        },
        links=["/trace/idle/groups", "/trace/breakdown_ns"],
        cost=case.cost_of(
            starved.share,
            "trace: idle time of the device while the host was busy"
            + (", bounded by the untraced step" if starved.checked else ""),
        ),
        gain=Gain(
            ratio_low=1 - starved.share,
            ratio_high=1.0,
            method="bound: the host is always ahead of the device",
        ),
        confidence=starved.confidence,
        advice=COMPILE if issues else MOVE,
        lever="compile" if issues else None,
        sketch="model = torch.compile(model)" if issues else None,
        resource="launch",
    )


def _place(case: Case, report: RankReport) -> Place:
    """Where the host was in the longest gap that it is to blame for, else the function that takes most of its time."""
    for gap in report.idle.gaps:
        if (
            gap.cause == "launch_starvation"
            and gap.where.file is not None
            and gap.host.kind in {"python", "operator"}
        ):
            return place_of(case, gap.where)
    busiest = max(report.top_lines, key=lambda line: line.self_ns, default=None)
    return place_of(case, busiest) if busiest is not None else Place()
