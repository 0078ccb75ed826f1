"""The host waits for the device in every step, without measuring anything.

## What it does
Finds `torch.cuda.synchronize()`, `torch.accelerator.synchronize()`, `stream.synchronize()` and `event.synchronize()` in code
that runs once per step and does not take the time, and the calls of this kind that a trace shows.

## Why it costs
The host stops launching until the device is done; then the device waits until the host has launched again. Nothing needs
it: whatever reads a value waits by itself, and work on one stream runs in order.

## Example
```python
import torch

for inputs, targets in loader:
    train_step(inputs.to(device), targets.to(device))
    torch.cuda.synchronize()
```

## Use instead
```python
import torch

for inputs, targets in loader:
    train_step(inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True))
```

## Fix safety
No fix is applied: buffers that other streams or the host fill may rely on it. Let streams wait for each other with
`stream.wait_event(event)`, which does not hold up the host.

## References
- PyTorch, CUDA semantics, "Asynchronous execution" and "CUDA streams": https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.host.patterns.claims import OF_TIMING
from pyrometer.rules.host.patterns.reads import during, sure_reads, synchronisations
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.joining import function_at
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(
    code="PYR105",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

ADVICE = (
    "Remove it: what reads a value waits by itself. Where another stream must wait, use `stream.wait_event(event)`, which "
    "does not hold up the host."
)
CLOCKS = tuple(
    f"{module}.{name}"
    for module, names in {
        "time": (
            "time",
            "perf_counter",
            "perf_counter_ns",
            "monotonic",
            "monotonic_ns",
            "process_time",
            "time_ns",
        ),
        "timeit": ("default_timer", "timeit"),
    }.items()
    for name in names
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Synchronisation in hot code that takes no time."""
    for read, why, confidence in sure_reads(module, synchronisations):
        if not is_timing(module, read.node):
            message = f"`{read.text}` makes the host wait for the device{during(why)}"
            yield match(read.node, message, advice=ADVICE, confidence=confidence, hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Synchronisation that a trace shows, with what it costs."""

    def tell(_stall: Stall) -> Told:
        return Told(ADVICE)

    def keep(stall: Stall) -> bool:
        function = function_at(stall.point.where, case.modules)
        return function is None or not is_timing(function[0], function[1].body[-1])

    return stall_findings(RULE, case, tell, keep)


def is_timing(module: Module, node: ast.expr | ast.stmt, deep: int = 1) -> bool:
    """Whether a wait belongs to taking the time: a clock, an event's time or a profiler there, or in all that call it."""
    function = module.function_of(node)
    names = [module.path.rpartition("/")[2], function.name if function is not None else ""]
    owner = module.class_of(node)
    if any(OF_TIMING.search(name) for name in [*names, owner.name if owner is not None else ""]):
        return True
    around: ast.AST = function if function is not None else module.tree
    clocks = [*module.calls(*CLOCKS), *module.method_calls("elapsed_time")]
    if any(module.function_of(clock) is function for clock in clocks) or _has_profiler(module, around):
        return True
    callers = [] if function is None or deep == 0 else module.heat.calls_of(function)
    return bool(callers) and all(is_timing(module, call, deep - 1) for call in callers)


def _has_profiler(module: Module, around: ast.AST) -> bool:
    names = (module.name_of(node.func) or "" for node in ast.walk(around) if isinstance(node, ast.Call))
    return any(
        name.startswith(("torch.profiler", "torch.autograd.profiler", "torch.cuda.profiler"))
        for name in names
    )
