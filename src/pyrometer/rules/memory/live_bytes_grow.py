"""Live memory grows with every step.

## What it does
Reads the leak report of a watched run: which tensors of old steps are still alive, at which line they were made, and
who holds them. It is an error where nothing that is known ends the growth, because the run then ends in an
out-of-memory error. Warm-up, a bounded buffer and garbage that waits for its collector are no leaks.

## Why it costs
Each step leaves something behind, so the memory that is left for the batch shrinks until there is none. The report
gives the bytes per step, and from these and what is free the step in which the run would end.

## Example
```python
class Controller:
    def __init__(self, encoder):
        self.encoder = encoder
        self.history = []

    def tick(self, readings):
        perception = self.encoder(readings)
        self.history.append(perception)  # every tick, for ever, with its graph
        return perception
```

## Use instead
```python
from collections import deque


class Controller:
    def __init__(self, encoder):
        self.encoder = encoder
        self.history = deque(maxlen=100)

    def tick(self, readings):
        perception = self.encoder(readings)
        self.history.append(perception.detach())
        return perception
```

## Fix safety
Semantic: whoever reads the oldest entries does not find them any more.

## References
- PyTorch FAQ, "My model reports cuda runtime error(2): out of memory": https://pytorch.org/docs/stable/notes/faq.html
- Python documentation, collections.deque: https://docs.python.org/3/library/collections.html#collections.deque
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.quantity import format_about, format_bytes
from pyrometer.rules.memory.patterns.leaking import LASTS_STEPS, fix_fields, rate, severity_of
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.memory.profile import LeakReport

RULE = declare(
    code="PYR217",
    severity="error",
    scope="symptom",
    fix_class="semantic",
    limits=(Limit("min_eta_steps", LASTS_STEPS, "memory that lasts for a billion steps lasts for any run"),),
)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """One finding for a run whose live bytes grow, at the site that grows most."""
    assert case.memory is not None
    leak = case.memory.leak
    if leak is None or leak.verdict not in ("leak", "growing cache"):
        return
    site = leak.sites[0] if leak.sites else None
    held = (
        f"{rate(site)} stay in {site.holder or 'memory that no name leads to'}"
        if site is not None
        else leak.sentence
    )
    more = f", and more in {len(leak.sites) - 1} other places" if len(leak.sites) > 1 else ""
    yield RULE.finding(
        severity=severity_of(leak, case.limit(RULE, "min_eta_steps")),
        message=f"Live memory grows: {held}{more}{_end(leak)}",
        where=Place(file=site.file, line=site.line, module=site.module, op=site.operator)
        if site is not None
        else Place(),
        evidence={
            "verdict": leak.verdict,
            "unbounded": leak.unbounded,
            "bytes_per_step": leak.bytes_per_step,
            **dict(zip(("bytes_per_step_low", "bytes_per_step_high"), leak.ci, strict=False)),
            "holder": site.holder if site is not None else None,
            "steps_until_full": leak.eta_steps,
            "num_steps": leak.num_steps,
            "false_alarm_rate": leak.false_alarm_rate,
        },
        links=["/memory/leak", *(["/memory/leak/sites/0"] if site is not None else [])],
        cost=Cost(bytes=round(leak.bytes_per_step), method="live tensor bytes that stay with each step"),
        confidence="high" if leak.unbounded else "medium",
        advice=_advice(leak),
        **(fix_fields(site) if site is not None else {}),
        resource=f"leak:{site.file}:{site.line}" if site is not None else "leak",
    )


def _end(leak: LeakReport) -> str:
    if leak.eta_steps is None or leak.limit_bytes is None:
        return ""
    return f"; {format_bytes(leak.limit_bytes)} are full after about {format_about(leak.eta_steps)} steps"


def _advice(leak: LeakReport) -> str:
    site = leak.sites[0] if leak.sites else None
    if site is None:
        return "No tensor explains the growth: look for other objects, compile caches or native code."
    if site.container is not None:
        return f"Give the container ({site.container}) a bound, and keep values without their graph: detach() before storing."
    return "Let go of what earlier steps made: detach() it where it is kept, or do not keep it."
