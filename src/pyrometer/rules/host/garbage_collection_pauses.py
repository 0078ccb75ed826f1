"""Python's garbage collector runs while the device is idle.

## What it does
Adds up, in a trace with Python functions, the idle time in which the host was in Python's garbage collector: in calls of
`gc.collect()`, and in collections that start by themselves where the profiler was told to record them (`record_python_gc_info`
of its experimental configuration).

## Why it costs
The collector walks over every object that Python tracks: seconds in a program with many. It starts whenever enough objects
were created, so that steps stall at odd moments, and in a job of several ranks each rank at another one.

## Example
```python
model = build_model()
for batch in loader:
    train_step(model, batch)
```

## Use instead
Take what lives for ever out of the collector's sight, and collect when it suits: on all ranks in the same step.
```python
model = build_model()
gc.collect()
gc.freeze()
gc.disable()
for step, batch in enumerate(loader):
    train_step(model, batch)
    if step % 1000 == 0:
        gc.collect()
```

## Fix safety
No fix is applied: objects in reference cycles stay until the next collection, and tensors among them keep their memory.

## References
- Python, `gc`, "Garbage Collector interface": https://docs.python.org/3/library/gc.html
"""

from __future__ import annotations

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import untraced

RULE = declare(
    code="PYR118",
    severity="warning",
    fix_class="semantic",
    limits=(Limit("min_share", 0.01, "below one percent of a step no measurement can tell it from noise"),),
)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Idle time in the garbage collector."""
    report = case.trace
    if report is None or not report.span_ns:
        return
    paused = report.idle.host_ns.get("garbage_collection", 0) / max(len(report.devices), 1)
    share = min(1.0, paused / report.span_ns)
    if share < case.limit(RULE, "min_share"):
        return
    gaps = [gap for gap in report.idle.gaps if gap.host.kind == "garbage_collection"]
    explicit = next((gap for gap in gaps if gap.host.name == "<built-in function collect>"), None)
    idle_of = "the device" if report.device_busy_ns else "the program"
    yield RULE.finding(
        message=f"{idle_of} is idle for {format_percent(share)} of the time while Python collects garbage",
        where=Place() if explicit is None else place_of(case, explicit.where),
        evidence={
            "pause_ns_per_step": round(paused / case.num_traced_steps),
            "num_long_pauses": len(gaps),
            "longest_pause_ns": max((gap.dur_ns for gap in gaps), default=0),
        },
        links=["/trace/idle/host_ns/garbage_collection"],
        cost=case.cost_of(
            share, "trace: idle time with the host in the garbage collector, as a share of the span"
        ),
        gain=untraced(case, share).gain("removal of the pauses; at worst they come elsewhere", worst=0.0),
        confidence="high" if case.num_traced_steps > 1 else "medium",
        advice=(
            "The program calls `gc.collect()` itself: call it between epochs."
            if explicit is not None
            else "After set-up call `gc.collect(); gc.freeze(); gc.disable()`, and `gc.collect()` every thousand steps, on all ranks at once."
        ),
        rewrite=None if explicit is not None else "import gc; gc.collect(); gc.freeze(); gc.disable()",
        resource="gc",
    )
