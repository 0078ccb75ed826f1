"""The optimizer updates parameters one operator at a time.

## What it does
Finds trainings whose optimizer phase takes a good part of the step with an optimizer that has a fused implementation which is
not switched on.

## Why it costs
Written in operators, an update of AdamW is about a dozen of them per parameter tensor, each of which moves the whole tensor. On a
GPU torch groups them by default (`foreach`), on a CPU it does not. `fused=True` does the update in one pass. On one CPU core it
took 0.10 to 0.41 of the time for Adam and AdamW, the less the larger the tensors, 0.26 to 0.75 for SGD with momentum, 0.30 to
0.55 for Adagrad; SGD without momentum gained nothing, and `foreach` took up to 2.5 times as long.

## Example
```python
import torch

model = torch.nn.Linear(512, 512)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```

## Use instead
```python
import torch

model = torch.nn.Linear(512, 512)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
```

## Fix safety
The same update up to rounding. It needs floating-point parameters, all on devices for which torch has the fused kernel, and does
not work with a differentiable optimizer.

## References
- PyTorch, torch.optim, "Algorithms": https://docs.pytorch.org/docs/stable/optim.html
- PyTorch, torch.optim.AdamW: https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
"""

from __future__ import annotations

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_percent
from pyrometer.rules.kernels.patterns.operators import cost_of
from pyrometer.rules.kernels.patterns.updates import SAVED
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.source.rewriting import Rewrite, rewritten, with_keywords

RULE = declare(
    code="PYR512",
    severity="warning",
    fix_class="tolerance",
    lever="fused_optimizer",
    limits=(Limit("min_share", 0.05, "a fused update saves nine tenths of the optimizer's time at best"),),
)

SAVED_OF_GROUPED = 0.5
"""On a GPU the update is grouped already: fusing saves at most the traffic between its parts, and perhaps nothing."""


@RULE.in_evidence("program")
def explain(case: Case) -> Findings:
    """An optimizer without `fused` that takes time."""
    program = case.program
    if program is None or program.optimizer is None or program.compiled:
        return
    optimizer, share = program.optimizer, _share(case)
    if optimizer.type_name == "SGD" and not optimizer.settings.get("momentum"):
        return
    if optimizer.type_name not in SAVED or optimizer.fused or share < case.limit(RULE, "min_share"):
        return
    if program.device not in {"cpu", "cuda"} or any(
        not name.startswith(("float", "bfloat")) for name in program.parameter_dtypes
    ):
        return
    low, high = SAVED[optimizer.type_name]
    if program.device == "cuda" and optimizer.foreach is not False:
        low, high = SAVED_OF_GROUPED, 0.0
    where, rewrite = _made(case, optimizer.type_name)
    yield RULE.finding(
        message=f"{optimizer.type_name} updates {counted(optimizer.num_tensors, 'tensor')} operator by operator, which takes "
        f"{format_percent(share)} of the step.",
        where=where,
        evidence={
            "optimizer_share": share,
            "num_tensors": optimizer.num_tensors,
            "num_parameters": optimizer.num_parameters,
            "foreach": optimizer.foreach,
            "fused": optimizer.fused,
        },
        links=["/program/optimizer"],
        cost=cost_of(case, share, "phase of the optimizer"),
        gain=Gain(
            ratio_low=1 - share * low,
            ratio_high=1 - share * high,
            method="bound: what fusing saved on one core, for tensors of 16 to 2,250,000 elements"
            if program.device == "cpu"
            else "bound: between nothing and half of the update",
        ),
        confidence="high" if program.device == "cpu" else "medium",
        advice=f"Pass fused=True to torch.optim.{optimizer.type_name}.",
        rewrite=rewrite,
        resource="optimizer",
    )


def _made(case: Case, name: str) -> tuple[Place, Rewrite | None]:
    """Where the optimizer is made, and that call with `fused=True`, if the sources show just one."""
    calls = [
        (module, call)
        for module in case.modules
        for call in module.calls(f"torch.optim.{name}", f"torch.optim.{name.lower()}.{name}")
    ]
    place = Place(op=f"torch.optim.{name}")
    if len(calls) != 1:
        return place, None
    module, call = calls[0]
    place = Place(file=module.path, line=call.lineno, op=place.op)
    if module.keyword(call, "foreach") is not None or module.keyword(call, "differentiable") is not None:
        return place, None
    return place, rewritten(module, with_keywords(module, call, {"fused": "True"}))


def _share(case: Case) -> float:
    """Share of the step that the optimizer takes: as measured, else as traced; 0 where neither tells."""
    if case.measurement is not None:
        shares = [phase.share for phase in case.measurement.phases if phase.name == "optimizer"]
        if shares:
            return shares[0]
    trace = case.trace
    if trace is None:
        return 0.0
    phases = [phase for phase in trace.phases.phases if phase.name == "optimizer"]
    if trace.num_kernels:
        return sum(phase.device_busy_ns for phase in phases) / max(trace.span_ns, 1)
    return sum(phase.host_share for phase in phases)
