"""Many small copies go from the host to the device in every step.

## What it does
Counts, in a trace, the copies to the device that carry less than 64 KiB, and speaks when they are many per step and cost a
noticeable part of it. In the source it finds `torch.tensor(value, device=device)` in a loop within hot code.

## Why it costs
A small copy costs a launch on the host and a turn of the device's copy engine, however few bytes it carries; from ordinary
memory of the host it also makes the host wait for the device.

## Example
```python
import torch

for batch in loader:
    scales = []
    for sample in batch:
        scales.append(torch.tensor(sample.scale, device=device))
    loss = model(batch.images, torch.stack(scales))
```

## Use instead
Collect on the host and copy once.
```python
import torch

for batch in loader:
    scales = torch.tensor([sample.scale for sample in batch], device=device)
    loss = model(batch.images, scales)
```

## Fix safety
No fix is applied: what belongs together is for the program to say. The values are the same.

## References
- PyTorch, "A guide on good usage of non_blocking and pin_memory()": https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- NVIDIA, CUDA C++ Best Practices Guide, "Data Transfer Between Host and Device": https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/
"""

from __future__ import annotations

import ast

from pyrometer.quantity import format_bytes, format_percent
from pyrometer.rules.host.patterns.copying import copied, copy_cost, copy_gain
from pyrometer.rules.host.patterns.reads import during, hot_place
from pyrometer.rules.match import Matches, match
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.text import one_line

RULE = declare(
    code="PYR112",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit(
            "min_per_step", 8, "a handful of small copies per step is what a batch of several tensors needs"
        ),
        Limit("min_share", 0.01, "below one percent of a step no measurement can tell it from noise"),
    ),
)

ADVICE = "Collect the values on the host in one tensor and copy that once, or create them on the device."
BUILDERS = ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor")


@RULE.in_source
def find(module: Module) -> Matches:
    """Tensors that hot code builds on a device from values of the host, one by one in an inner loop."""
    for call in module.calls(*BUILDERS):
        target = module.keyword(call, "device")
        inner = is_repeated(module, call)
        if target is None or inner is None or _is_host(module, target) or not _is_small(module, call):
            continue
        why = hot_place(module, call)
        if why is not None and why.loop is not inner:
            message = f"`{one_line(module.source(call))}` copies a few bytes to the device in each round{during(why)}"
            yield match(call, message, advice=ADVICE, hot=why.why)


def _is_host(module: Module, target: ast.expr, deep: int = 2) -> bool:
    """Whether a device is the CPU: "cpu", torch.device("cpu"), or a name for these."""
    if isinstance(target, ast.Call) and module.name_of(target.func) == "torch.device" and target.args:
        target = target.args[0]
    if module.literal(target) == "cpu":
        return True
    given = module.assignments(target.id, target) if isinstance(target, ast.Name) and deep else ()
    return bool(given) and all(_is_host(module, node, deep - 1) for node in given)


def _is_small(module: Module, call: ast.Call) -> bool:
    """Whether a few numbers are given, more than none: not what a method or function makes, which may be large."""
    given = call.args[0] if call.args else None
    if isinstance(given, ast.List | ast.Tuple):
        return bool(given.elts)
    if isinstance(given, ast.Name):
        return not any(_may_be_large(value) for value in module.assignments(given.id, given))
    return given is not None and not _may_be_large(given)


def _may_be_large(value: ast.expr) -> bool:
    """Whether a value is made by a comprehension or a call, or is a field of a record."""
    return any(
        isinstance(part, ast.ListComp | ast.GeneratorExp)
        or (isinstance(part, ast.Call) and not _is_number(part))
        or (isinstance(part, ast.Subscript) and isinstance(getattr(part.slice, "value", None), str))
        for part in ast.walk(value)
    )


def _is_number(call: ast.Call) -> bool:
    """Whether a call gives one number, as its name says."""
    return getattr(call.func, "id", getattr(call.func, "attr", "")) in {
        "len",
        "float",
        "int",
        "bool",
        "item",
        "sum",
        "min",
        "max",
    }


def is_repeated(module: Module, call: ast.Call) -> ast.AST | None:
    """The innermost loop or comprehension that repeats a call."""
    for above in module.ancestors(call):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            break
        if isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return above
    return next(iter(module.loops_around(call)), None)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Small copies by kind of host memory."""
    report = case.trace
    if report is None or report.launches.device is None or report.launches.device.call is None:
        return
    call_ns = report.launches.device.call.median_ns
    for found in copied(case, "H2D", None):
        kind = found.kind
        per_step = kind.num_small / case.num_traced_steps
        each_ns = max(call_ns, kind.total_ns / max(kind.num_copies, 1))
        share = min(1.0, kind.num_small * each_ns / report.span_ns)
        if per_step < case.limit(RULE, "min_per_step") or share < case.limit(RULE, "min_share"):
            continue
        size = format_bytes(kind.total_bytes / max(kind.num_copies, 1))
        yield RULE.finding(
            message=(
                f"{per_step:,.4g} copies of less than 64 KiB{case.per_step} go to the device (mean {size}){spoken(found.place)}, "
                f"which costs {format_percent(share)} of the time"
            ),
            where=found.place,
            evidence={
                "small_copies_per_step": per_step,
                "num_copies": kind.num_copies,
                "total_bytes": kind.total_bytes,
            },
            links=[f"/trace/copies/kinds/{found.row}"],
            cost=copy_cost(case, share, "number of small copies times the longer of launch and copy"),
            gain=copy_gain(case, share, "H2D"),
            confidence="high" if found.call is not None else "medium",
            advice=ADVICE,
            resource="copy:H2D",
        )
