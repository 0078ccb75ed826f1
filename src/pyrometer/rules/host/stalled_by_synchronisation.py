"""The host waits for the device, and no pattern in the source says why.

## What it does
Lists the synchronisation points of a trace that no other rule explains: waits of libraries, of the allocator, of copies
whose direction is not known, with what waited, for how long, and how long the device stood idle afterwards.

## Why it costs
While the host waits it launches nothing. When the device has done what was queued it stands idle, until the host has woken
up and launched again.

## Example
```python
for inputs, targets in loader:
    loss = library_step(model, inputs, targets)
```

## Use instead
Let torch name each wait as it happens, and look at the stack.
```python
torch.cuda.set_sync_debug_mode("warn")
loss = library_step(model, inputs, targets)
torch.cuda.set_sync_debug_mode("default")
```

## Fix safety
No fix is applied: which call waits, and why, must be found first.

## References
- PyTorch, `torch.cuda.set_sync_debug_mode`: https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html
- PyTorch, CUDA semantics, "Asynchronous execution": https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

from pyrometer.rules.host.patterns.claims import is_timed
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR108", severity="warning", scope="symptom", fix_class="semantic", limits=LIMITS[:1])

NAME_IT = 'Find the line with `torch.cuda.set_sync_debug_mode("warn")`, or record the trace with stacks.'
ALLOCATOR = (
    "The allocator asks the driver for memory, or gives it back, within the step: keep shapes the same, drop "
    "`torch.cuda.empty_cache()`, and try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`."
)
AT_PLACE = "Look at what this function calls that needs a value on the host, and do it once after the loop."


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Points that no other rule explains."""
    if case.trace is None or case.trace.synchronisation.would_stall:
        return iter(())
    return stall_findings(RULE, case, _tell, lambda stall: not is_timed(stall.point))


def _tell(stall: Stall) -> Told:
    if stall.point.scope == "allocator":
        return Told(ALLOCATOR)
    return Told(NAME_IT if stall.place.file is None else f"{AT_PLACE} {NAME_IT}")
