"""Tensors that nothing reads any more are still alive at the memory peak.

## What it does
Reads the recorded peak: which tensors are alive then although they were used for the last time before, and which local
variable holds them (values kept for a log line, the batch on its way to the next one, a result of the step before).

## Why it costs
A name is enough to keep a tensor, and with a graph behind it also what the graph saved. It lies beside everything that
the peak does need.

## Example
```python
for x, y in loader:
    hidden = encoder(x)
    summary = hidden.double()  # for the log line below
    loss = loss_fn(head(hidden), y)
    loss.backward()
    print(summary.mean())
```

## Use instead
```python
for x, y in loader:
    hidden = encoder(x)
    mean = hidden.detach().mean(dtype=float)
    loss = loss_fn(head(hidden), y)
    loss.backward()
    print(mean)
```

## Fix safety
Exact: the same values; a variable that is deleted cannot be read afterwards.

## References
- PyTorch FAQ, "Don't hold onto tensors and variables you don't need": https://pytorch.org/docs/stable/notes/faq.html
"""

from __future__ import annotations

from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.memory.patterns.peak import LIMITS, is_large, is_short, of_advice
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR211", severity="info", scope="symptom", fix_class="exact", limits=LIMITS)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Variables that hold what the peak does not need."""
    memory = case.memory
    assert memory is not None
    if not is_large(case, RULE):
        return
    for given in given_advice(case.memory, "/memory", "let-go-earlier"):
        share = given.advice.saves_bytes / memory.peak_bytes
        if share < case.limit(RULE, "min_saving"):
            continue
        yield of_advice(
            RULE,
            case,
            given,
            "with these lives ended at their last use",
            severity="warning" if is_short(case, case.limit(RULE, "short_share")) else RULE.severity,
            message=f"Variables that are not read again keep alive {format_bytes(given.advice.saves_bytes)} ({format_percent(share, 2)}) "
            f"of the peak of {format_bytes(memory.peak_bytes)}",
            evidence={
                "peak_bytes": memory.peak_bytes,
                "share_of_peak": round(share, 4),
                "held": given.advice.why,
            },
            confidence="high",
            resource="peak:kept-references",
        )
