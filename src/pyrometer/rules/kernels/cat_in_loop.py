"""A tensor is grown with torch.cat in a loop.

## What it does
Finds `x = torch.cat([x, y])` (or `hstack`, `vstack`, `concat`) in a loop that reads `x` for nothing else. With a trace it tells
what the copies take.

## Why it costs
Each round copies all that there is so far: n rounds copy n/2 times the final size. On one CPU core a hundred rounds of 64 KiB
took 35 times as long as one `torch.cat` of a list.

## Example
```python
import torch

history = torch.empty(0, 64)
for frame in frames:
    history = torch.cat([history, model(frame)])
```

## Use instead
```python
import torch

outputs = []
for frame in frames:
    outputs.append(model(frame))
history = torch.cat(outputs)
```

## Fix safety
The result is the same, bit by bit. A piece that something may write into after it was added is added as a copy; where the result is
read elsewhere in the loop, or is an attribute, no rewrite is given.

## References
- PyTorch, torch.cat: https://docs.pytorch.org/docs/stable/generated/torch.cat.html
- PyTorch, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.host.patterns.loops import FEW_NAME
from pyrometer.rules.kernels.patterns.growing import collected
from pyrometer.rules.kernels.patterns.operators import (
    callers_of,
    calls_per_step,
    cost_of,
    index_of,
    same_function,
)
from pyrometer.rules.match import Matches, match
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.index import last_name
from pyrometer.source.knowledge import LOADER_NAME
from pyrometer.source.rewriting import rewritten
from pyrometer.source.value import Kind

RULE = declare(
    code="PYR511",
    severity="warning",
    fix_class="exact",
    lever="preallocate",
    limits=(
        Limit("min_share", 0.02, "below a fiftieth of the step the copies cannot be told from noise"),
        Limit(
            "min_copies",
            8,
            "a join at the end is torch.cat, too, and a few rounds copy little more than once",
        ),
        Limit("max_rounds", 8, "a loop over so few rounds copies little more than once"),
    ),
)

JOINS = tuple(
    f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "dstack", "column_stack")
)
OPS = frozenset(["aten::cat"])
DRAWN = frozenset(["multinomial", "argmax"])


class Growth(NamedTuple):
    """One place where a tensor is grown."""

    call: ast.Call
    name: str
    added: str
    loop: ast.For | ast.AsyncFor | ast.While


def growths(module: Module) -> Iterator[Growth]:
    """Every tensor that is grown in a loop which reads it for nothing else."""
    for call in module.calls(*JOINS):
        statement = module.parent(call)
        loops = module.loops_around(call)
        parts = call.args[0] if call.args else module.keyword(call, "tensors")
        if not loops or not isinstance(parts, (ast.List, ast.Tuple)) or not isinstance(statement, ast.Assign):
            continue
        target = statement.targets[0]
        own = [element for element in parts.elts if _same(element, target)]
        if len(own) != 1 or len(statement.targets) != 1 or not isinstance(target, (ast.Name, ast.Attribute)):
            continue
        name = module.source(target)
        loop = loops[0]
        if (
            _reads(loop, target) == 1
            and not _is_short(module, loop)
            and not module.is_rare(call)
            and not _is_reset(loop, target, statement)
        ):
            yield Growth(
                call,
                name,
                ", ".join(module.source(element) for element in parts.elts if element is not own[0]),
                loop,
            )


def _same(one: ast.AST, other: ast.AST) -> bool:
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    if isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute):
        return one.attr == other.attr and _same(one.value, other.value)
    return False


def _reads(loop: ast.AST, target: ast.expr) -> int:
    """How often the loop reads the tensor; once is the call itself."""
    return sum(
        isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and _same(node, target)
        for node in ast.walk(loop)
    )


def _is_reset(loop: ast.AST, target: ast.expr, own: ast.Assign) -> bool:
    """Whether the loop also assigns something else to it, so that it does not grow throughout."""
    return any(
        isinstance(node, ast.Assign) and node is not own and any(_same(one, target) for one in node.targets)
        for node in ast.walk(loop)
    )


def _is_short(module: Module, loop: ast.AST) -> bool:
    """A loop over a few constants, or over what an object was set up with."""
    if not isinstance(loop, ast.For):
        return False
    if isinstance(loop.iter, (ast.Tuple, ast.List)):
        return True
    if isinstance(loop.iter, ast.Attribute) and module.value_of(loop.iter).kind not in {
        Kind.LOADER,
        Kind.TENSOR,
    }:
        return LOADER_NAME.search(loop.iter.attr) is None
    if not (isinstance(loop.iter, ast.Call) and module.name_of(loop.iter.func) == "range"):
        return False
    rounds = module.literal(loop.iter.args[-1]) if loop.iter.args else None
    return isinstance(rounds, int) and rounds <= module.limit(RULE, "max_rounds")


@RULE.in_source
def find(module: Module) -> Matches:
    """Tensors grown in a loop."""
    by_loop: dict[ast.AST, list[Growth]] = {}
    for growth in growths(module):
        if not module.region(growth.call).test and not _copies_little(module, growth):
            by_loop.setdefault(growth.loop, []).append(growth)
    for growth, *others in by_loop.values():
        names = " and ".join(dict.fromkeys(each.name for each in [growth, *others]))
        yield match(
            growth.call,
            f"{names} {'are' if ' and ' in names else 'is'} copied whole in each round of the loop in line {growth.loop.lineno}",
            advice=advice_for(growth),
            hot=getattr(module.hot(growth.call), "why", None),
        )


def _copies_little(module: Module, growth: Growth) -> bool:
    """Whether the rounds are few, or add only the tokens that were drawn from the answer of a network that each of them runs."""
    loop = growth.loop
    counted = loop.iter if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else ast.Constant(0)
    limits = (
        last_name(node) or "" for node in ast.walk(counted) if isinstance(node, ast.Name | ast.Attribute)
    )
    if module.name_of(getattr(counted, "func", counted)) == "range" and any(map(FEW_NAME.search, limits)):
        return True
    names = {node.id: node for node in ast.walk(growth.call) if isinstance(node, ast.Name)}
    given = [value for name, node in names.items() for value in module.assignments(name, node)]
    drawn = any(
        isinstance(node, ast.Call) and last_name(node.func) in DRAWN
        for value in [growth.call, *given]
        for node in ast.walk(value)
    )
    return drawn and module.heat.loops.runs_module(loop)


def advice_for(growth: Growth) -> str:
    """What to write instead."""
    return f"Append {growth.added} to a list in the loop, and join the list once after it; or write into a tensor of the final size."


@RULE.in_evidence("trace", "source")
def explain(case: Case) -> Findings:
    """Growth in a function in which the trace shows torch.cat."""
    trace = case.trace
    if trace is None:
        return
    for line, ns in callers_of(trace, OPS):
        share = min(1.0, ns / max(trace.span_ns, 1))
        if share < case.limit(RULE, "min_share"):
            continue
        calls = sum(op.calls for op in trace.top_ops if op.name in OPS)
        per_step = calls_per_step(case, calls)
        if per_step < case.limit(RULE, "min_copies"):
            continue
        places = [
            (module, growth)
            for module in case.modules
            for growth in growths(module)
            if same_function(case, line, module, growth.call.lineno)
        ]
        for module, growth in places:
            place = Place(file=module.path, line=growth.call.lineno, function=line.function, op="aten::cat")
            part = share / len(places)
            # One join at the end copies what the last round copies: of n rounds, two of n parts.
            left = min(1.0, 2 / max(per_step, 2))
            yield RULE.finding(
                message=f"Growing {growth.name} with torch.cat takes {format_percent(part)} of the time{spoken(place)}, in "
                f"{per_step:,.0f} copies{case.per_step}.",
                where=place,
                evidence={"share": part, "copies_per_step": per_step},
                links=[index for index in [index_of(trace, OPS)] if index is not None],
                cost=cost_of(case, part, "time of torch.cat in this function"),
                gain=untraced(case, part).gain(
                    "removal: one join copies as much as the last two rounds; at worst half of the rest is fixed cost",
                    best=1 - left,
                    worst=(1 - left) / 2,
                ),
                confidence="high",
                advice=advice_for(growth),
                rewrite=rewritten(module, collected(module, growth.call)),
                resource="op:aten::cat",
            )
