"""A tensor's value is fetched as a Python number in every step.

## What it does
Finds `.item()`, `.tolist()`, `float(t)`, `int(t)` and `math.isnan(t)` of a tensor in code that runs once per step, and in a
trace the calls that made the host wait, with the time that the device stood idle afterwards.

## Why it costs
Work for a device is queued while the host runs ahead. A Python number must be there before the next line can run, so the
host waits until the device has done all that is queued; then the queue is empty, and the device waits for the host. On a
CPU nothing waits, but each call costs the host about a microsecond: fetching 512 losses of a small network one by one took
more than half of its training step on two CPU cores.

## Example
```python
import torch

for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    total += loss.item()
```

## Use instead
Add up on the device, and read the sum once, after the loop or every hundred steps.
```python
import torch

total = torch.zeros((), device=device)
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    total += loss.detach()
print(total.item())
```

## Fix safety
No fix is applied: when a value is read, and in which precision it is added up, is for the program to say.

## References
- PyTorch, Performance Tuning Guide, "Avoid unnecessary CPU-GPU synchronization": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, CUDA semantics, "Asynchronous execution": https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.answers import is_answer
from pyrometer.rules.host.patterns.avoidable import COUNTS, in_layer, only_checks
from pyrometer.rules.host.patterns.reads import Read, during, scalar_reads, sure_reads
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, loop_share, stall_findings
from pyrometer.rules.match import Match, match
from pyrometer.rules.registry import declare

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.rules.finding import Finding
    from pyrometer.source.module import Hot, Module

RULE = declare(
    code="PYR101",
    about_devices=True,
    name="item-in-hot-loop",
    doc=__doc__,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

ON_DEVICE = "Keep it on the device: add up with `.detach()`, and read the result once after the loop or every hundred steps."


@RULE.in_source
def find(module: Module) -> Iterator[Match]:
    """Reads of tensors in hot code."""
    for read, why, confidence in sure_reads(module, scalar_reads):
        if why.per == "request" and is_answer(module, read.node):
            continue  # One wait for each request is what its answer takes.
        if in_layer(why) and _serves_the_layer(module, read, why):
            continue
        if why.within == "round" and confidence != "high":
            continue
        advice, _ = advise(module, read)
        message = f"`{read.text}` makes the host wait for the device{during(why)}"
        yield match(read.node, message, advice=advice, confidence=confidence, hot=why.why)


def _serves_the_layer(module: Module, read: Read, why: Hot) -> bool:
    """Whether a layer needs the number: it counts batches as torch's own do, checks arguments, or has sizes as a list at once."""
    if isinstance(read.subject, ast.Attribute) and read.subject.attr in COUNTS:
        return True
    whole = (
        isinstance(read.node, ast.Call)
        and isinstance(read.node.func, ast.Attribute)
        and read.node.func.attr == "tolist"
    )
    return only_checks(module, read.node) or (
        whole and why.per == "layer" and not in_comprehension(module, read.node)
    )


def in_comprehension(module: Module, node: ast.expr) -> bool:
    """Whether an expression is evaluated for each element of a comprehension."""
    return any(
        isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp)
        for above in module.ancestors(node)
    )


@RULE.in_evidence("trace")
def explain(case: Case) -> Iterator[Finding]:
    """Reads that a trace shows, with what they cost."""

    def tell(stall: Stall) -> Told:
        if stall.module is None or stall.read is None:
            return Told(f"Find what calls {stall.point.name}{_named(stall)}. {ON_DEVICE}")
        advice, rewrite = advise(stall.module, stall.read)
        return Told(advice, rewrite, with_it=0.0 if rewrite is None else loop_share(stall, case))

    return stall_findings(RULE, case, tell)


def advise(module: Module, read: Read) -> tuple[str, str | None]:
    """What to do about one read, and the line to write where it reads a tensor element by element."""
    loop = element_loop(module, read)
    if loop is None:
        return ON_DEVICE, None
    many, one = module.source(loop.iter), module.source(loop.target)
    advice = (
        f"Reduce `{many}` on the device and read one number, or fetch it whole: `{many}.tolist()` waits once, and then "
        f"`{one}` is a Python number, so that `{read.text}` becomes `{one}`."
    )
    return advice, f"for {one} in {many}.tolist():"


def element_loop(module: Module, read: Read) -> ast.For | None:
    """The loop over a tensor's elements that a read stands in, where its subject is the element."""
    if not isinstance(read.subject, ast.Name):
        return None
    for loop in module.loops_around(read.node):
        if (
            isinstance(loop, ast.For)
            and isinstance(loop.target, ast.Name)
            and loop.target.id == read.subject.id
        ):
            return loop if module.value_of(loop.iter).is_tensor else None
    return None


def _named(stall: Stall) -> str:
    return f" in {stall.place.function}" if stall.place.function else ""
