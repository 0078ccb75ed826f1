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
from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.answers import is_answer
from pyrometer.rules.host.patterns.avoidable import (
    COUNTS,
    ends_early,
    in_layer,
    is_for_library,
    is_needless_number,
    only_checks,
)
from pyrometer.rules.host.patterns.reads import Read, during, scalar_reads, sure_reads
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, loop_share, stall_findings
from pyrometer.rules.kernels.patterns.better import bracketed
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, declare
from pyrometer.source.edit import Edit, replace
from pyrometer.source.mutation import changed_in_place, names_in, sources_of
from pyrometer.source.rewriting import Rewrite, rewritten

if TYPE_CHECKING:
    from pyrometer.source.module import Hot, Module

RULE = declare(
    code="PYR101",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

ON_DEVICE = "Keep it on the device: add up with `.detach()`, and read the result once after the loop or every hundred steps."


@RULE.in_source
def find(module: Module) -> Matches:
    """Reads of tensors in hot code."""
    for read, why, confidence in sure_reads(module, scalar_reads):
        if why.per == "request" and is_answer(module, read.node):
            continue  # One wait for each request is what its answer takes.
        if _hands_out(module, read.node) or (_is_whole(read.node) and is_for_library(module, read)):
            continue
        if (
            ends_early(module, read)
            or _is_prediction(module, read, why)
            or _is_of_no_network(module, read, why)
        ):
            continue
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
    whole = _is_whole(read.node)
    if only_checks(module, read.node):
        return True
    if in_comprehension(module, read.node) or module.loops_around(read.node):
        return whole and why.per == "layer" and not in_comprehension(module, read.node)
    return whole or not is_needless_number(module, read.node)


def _is_prediction(module: Module, read: Read, why: Hot) -> bool:
    """Whether a program that does not train fetches all of a result: that is what it runs the network for."""
    loops = module.heat.loops
    trains = loops.in_training_file() if why.loop is None else loops.trains(why.loop)
    return _is_whole(read.node) and why.per != "batch-element" and not trains


def _is_of_no_network(module: Module, read: Read, why: Hot) -> bool:
    """Whether a loop neither trains nor runs a network, nor walks over what is read: a search, a simulation, statistics of data."""
    if why.within != "round" or why.loop is None or module.heat.loops.runs_module(why.loop):
        return False
    targets = [loop.target for loop in module.loops_around(read.node) if not isinstance(loop, ast.While)]
    walked = names_in(*targets)
    return read.subject is None or not names_in(read.subject) & walked


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"


def _hands_out(module: Module, node: ast.expr) -> bool:
    """`for sentence, score in zip(batch, scores.tolist())`: the whole is fetched once, to be given away one by one."""
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"
    ):
        return False
    around = module.parent(node)
    if isinstance(around, ast.Call) and module.name_of(around.func) in {"zip", "enumerate"}:
        node, around = around, module.parent(around)
    return isinstance(around, ast.For | ast.comprehension) and around.iter is node


def in_comprehension(module: Module, node: ast.expr) -> bool:
    """Whether an expression is evaluated for each element of a comprehension."""
    child: ast.AST = node
    for above in module.ancestors(node):
        if isinstance(above, ast.comprehension) and child is above.iter:
            return False
        if isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return True
        child = above
    return False


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Reads that a trace shows, with what they cost."""

    def tell(stall: Stall) -> Told:
        if stall.module is None or stall.read is None:
            return Told(f"Find what calls {stall.point.name}{_named(stall)}. {ON_DEVICE}")
        advice, rewrite = advise(stall.module, stall.read)
        loop = element_loop(stall.module, stall.read)
        return Told(advice, rewrite, with_it=0.0 if loop is None else loop_share(stall, case))

    return stall_findings(RULE, case, tell)


def advise(module: Module, read: Read) -> tuple[str, Rewrite | None]:
    """What to do about one read, and the loop to write where it reads a tensor element by element."""
    loop = element_loop(module, read)
    if loop is None:
        return ON_DEVICE, None
    many, one = module.source(loop.iter), module.source(loop.target)
    advice = (
        f"Reduce `{many}` on the device and read one number, or fetch it whole: `{many}.tolist()` waits once, and then "
        f"`{one}` is a Python number, so that `{read.text}` becomes `{one}`."
    )
    return advice, rewritten(module, fetched_whole(module, loop))


def fetched_whole(module: Module, loop: ast.For) -> list[Edit]:
    """Edits that fetch a tensor before the loop over its elements, which reads nothing of them but their numbers.

    None where the loop uses an element as a tensor, or may write into the tensor.
    """
    if not isinstance(loop.target, ast.Name):
        return []
    name = loop.target.id
    scope = module.function_of(loop) or module.tree
    uses = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and node.id == name and node is not loop.target
    ]
    reads = [read for use in uses if (read := _number_of(module, use)) is not None]
    within = {id(node) for statement in loop.body for node in ast.walk(statement)}
    if len(reads) != len(uses) or any(id(use) not in within for use in uses):
        return []
    if sources_of(names_in(loop.iter), scope) & changed_in_place(loop):
        return []
    edits = [replace(module, read, name) for read in reads if isinstance(read.func, ast.Attribute)]
    return [*edits, replace(module, loop.iter, f"{bracketed(module, loop.iter)}.flatten().tolist()")]


def _number_of(module: Module, use: ast.Name) -> ast.Call | None:
    """The `x.item()`, `float(x)` or `int(x)` that a name is read by."""
    above = module.parent(use)
    if isinstance(above, ast.Attribute):
        call = module.parent(above)
        is_item = isinstance(call, ast.Call) and above.attr == "item" and call.func is above and not call.args
        return call if is_item and isinstance(call, ast.Call) else None
    is_cast = (
        isinstance(above, ast.Call)
        and module.name_of(above.func) in {"float", "int"}
        and len(above.args) == 1
    )
    return above if is_cast and isinstance(above, ast.Call) else None


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
