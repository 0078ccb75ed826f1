"""A chain of elementwise operators writes and reads each intermediate result.

## What it does
Finds functions in which elementwise operators, reductions and copies of large tensors follow each other again and again and take
a good part of the step, in a program that is not compiled, and names the line with the longest expression of them. In a trace
of one or two steps, where nothing can be told to repeat, it goes by elementwise operators on tensors of one large shape.

## Why it costs
An elementwise operator does a few operations per element, so that it takes as long as reading and writing its tensors. Eight of
them in a row move eight times what one fused kernel would. On one CPU core the tanh approximation of GELU, written out over four
million elements, took 12 times as long as the one operator that computes the same.

## Example
```python
import torch

def activation(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))
```

## Use instead
Call the operator that does it all, where there is one; else let torch.compile fuse the function.
```python
import torch
from torch.nn import functional

def activation(x):
    return functional.gelu(x, approximate="tanh")

scaled = torch.compile(lambda x, shift: torch.tanh(x * 2.0 + shift) * x)
```

## Fix safety
A fused kernel may round differently, within a few units in the last place.

## References
- PyTorch, Performance Tuning Guide, "Fuse operations": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- NVIDIA, Deep Learning Performance Guide, "Memory-Limited Layers": https://docs.nvidia.com/deeplearning/performance/dl-performance-memory-limited/index.html
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import counted, format_bytes, format_percent
from pyrometer.rules.finding import Finding
from pyrometer.rules.joining import Located, function_at, module_of
from pyrometer.rules.kernels.patterns.chains import Chains, chains_of
from pyrometer.rules.kernels.patterns.layers import LAYERS
from pyrometer.rules.kernels.patterns.operators import (
    POINTWISE,
    callers_of,
    cost_of,
    place_of_operator,
    roof_points,
    shapes_of,
    span_share,
)
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.sequences import drawn, told
from pyrometer.source.index import last_name
from pyrometer.source.rewriting import Rewrite, insert_before, rewritten, spelled

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import RoofPoint

RULE = declare(
    code="PYR502",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="compile",
    limits=(
        Limit("min_share", 0.15, "fusing saves most of the chain's time at best, and compiling has a price"),
        Limit("min_length", 3, "two operators per step are in every program"),
        Limit("min_bytes", 2**20, "smaller tensors stay in a cache, so that the traffic costs little"),
    ),
)

MOST_TOLD = 3
FEWEST_STEPS = 3
"""What comes once per step is told to repeat from so many steps on."""

TANH_GELU = frozenset({"aten::pow", "aten::mul", "aten::add", "aten::tanh"})
"""What `0.5 * x * (1 + tanh(…(x + 0.044715 * x**3)))` runs."""


COPIES = frozenset({"aten::copy_", "aten::_to_copy", "aten::clone"})
"""Parts of chains that no layer begins with."""


class SameShape(NamedTuple):
    """Elementwise operators on tensors of one shape."""

    shape: tuple[int, ...]
    points: list[tuple[int, RoofPoint]]
    share: float
    calls_per_step: float


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """The function whose repeated chains take most of the time."""
    trace, program = case.trace, case.program
    if trace is None or (program is not None and program.compiled) or _is_compiled(trace):
        return
    limits = {name: case.limit(RULE, name) for name in ("min_bytes", "min_length")}
    chains = max(chains_of(case, **limits), key=lambda chain: chain.share, default=None)
    told_apart = case.num_traced_steps >= FEWEST_STEPS
    shapes = () if told_apart else _shapes(case, trace)
    shape = max(shapes, key=lambda same_shape: same_shape.share, default=None)
    of_chains, of_shape = chains.share if chains else 0.0, shape.share if shape else 0.0
    if max(of_chains, of_shape) < case.limit(RULE, "min_share"):
        return
    if shape is not None and of_shape > of_chains:
        yield _of_one_shape(case, shape)
    elif chains is not None:
        yield _repeated(case, chains)


def _repeated(case: Case, chains: Chains) -> Finding:
    """What is found of the chains of one function."""
    first = chains.sequences[0][1]
    place = _at_longest_line(case, first.where, place_of(case, first.where))
    more = len(chains.sequences) - 1
    text = drawn(first) + (f" and {counted(more, 'more chain')}" if more else "")
    handed = chains.handed_bytes
    per_step = None if handed is None else handed / case.num_traced_steps
    moved = "" if per_step is None else f" ({format_bytes(per_step)}{case.per_step})"
    return RULE.finding(
        severity="info" if _is_networks(case, place, chains.operators) else "warning",
        message=f"{text} take{'' if more else 's'} {format_percent(chains.share)} of the time{spoken(place)}: each part writes its "
        f"result{moved} and the next reads it again.",
        where=place,
        evidence={
            "operators": sorted(chains.operators),
            "operators_per_step": chains.parts_per_step,
            "chains": [told(case, sequence) for _, sequence in chains.sequences[:MOST_TOLD]],
            "intermediate_bytes_per_step": per_step,
        },
        links=[f"/trace/sequences/{i}" for i, _ in chains.sequences],
        cost=cost_of(case, chains.share, "own time of the parts that are bound by memory"),
        gain=_measured(case) or chains.gain,
        confidence="medium",
        advice=_advice(case, place, chains.operators, chains.bytes_per_part),
        rewrite=_rewrite(case, place),
        sketch="model = torch.compile(model)" if _is_foreign(case, place) else None,
        resource=f"pointwise:{place.file}:{place.function}" if place.file else f"pointwise:{drawn(first)}",
    )


def _is_networks(case: Case, place: Place, operators: set[str]) -> bool:
    """Whether a chain may be layers of a network, which are nobody's fault: by its operators; outside of modules, by its large ones."""
    if operators <= POINTWISE | COPIES:
        return False
    function = function_at(place, case.modules)
    if function is None or operators & (LAYERS - POINTWISE):
        return True
    module, node = function
    owners = (around for around in module.ancestors(node) if isinstance(around, ast.ClassDef))
    return any(module.classes.is_module(owner) for owner in owners)


def _of_one_shape(case: Case, chain: SameShape) -> Finding:
    """What is found of elementwise operators on one shape, which probably follow each other."""
    names = [point.op or "" for _, point in chain.points]
    place = _place(case, names)
    size = "×".join(map(str, chain.shape))
    return RULE.finding(
        message=f"{chain.calls_per_step:.3g} elementwise operators{case.per_step} on tensors of {size} take "
        f"{format_percent(chain.share)} of the time{spoken(place)}: each writes its result and the next reads it again.",
        where=place,
        evidence={
            "operators": sorted(set(names)),
            "operators_per_step": chain.calls_per_step,
            "bytes_per_step": sum(point.num_bytes or 0 for _, point in chain.points) / case.num_traced_steps,
        },
        links=[f"/trace/roofline/{i}" for i, _ in chain.points],
        cost=cost_of(case, chain.share, "own time of these operators"),
        gain=_measured(case)
        or Gain(
            ratio_low=1 - chain.share * (1 - 1 / chain.calls_per_step),
            ratio_high=1.0,
            method="roofline: fused, all of them move what one of them moves now; at worst nothing is fused",
        ),
        confidence="medium",
        advice=_advice(case, place, set(names), _largest(chain.points)),
        rewrite=_rewrite(case, place),
        sketch="model = torch.compile(model)" if _is_foreign(case, place) else None,
        resource=f"pointwise:{size}",
    )


def _shapes(case: Case, trace: RankReport) -> Iterator[SameShape]:
    groups: dict[tuple[int, ...], list[tuple[int, RoofPoint]]] = defaultdict(list)
    for i, point in roof_points(trace, POINTWISE):
        shape = max(shapes_of(point), key=math.prod, default=None)
        if shape is not None and (point.num_bytes or 0) / point.calls >= case.limit(RULE, "min_bytes"):
            groups[tuple(shape)].append((i, point))
    for size, points in groups.items():
        per_step = sum(point.calls for _, point in points) / case.num_traced_steps
        if per_step >= case.limit(RULE, "min_length"):
            share = min(1.0, sum(span_share(trace, point) for _, point in points))
            yield SameShape(size, points, share, per_step)


def _is_compiled(trace: RankReport) -> bool:
    return any(kernel.category == "triton" or kernel.kernel_file for kernel in trace.top_kernels) or any(
        op.name.startswith(("Torch-Compiled Region", "CompiledFunction", "## Call")) for op in trace.top_ops
    )


def _measured(case: Case) -> Gain | None:
    """What compiling brought, where it was tried."""
    tried = case.compiled.evaluation if case.compiled is not None else None
    best = (
        next((mode for mode in tried.modes if mode.mode == tried.best), None) if tried is not None else None
    )
    if best is None or best.ratio is None or best.outcome != "faster":
        return None
    return Gain(
        ratio_low=best.ci_low,
        ratio_high=best.ci_high,
        method=f"measured: torch.compile in mode {best.mode} against eager",
    )


def _advice(case: Case, place: Place, operators: set[str], num_bytes: float | None) -> str:
    moved = "" if num_bytes is None else f": it moves {format_bytes(num_bytes)} per operator"
    if operators >= TANH_GELU:
        at_once = (
            'These are the parts of GELU in its tanh form: `torch.nn.functional.gelu(x, approximate="tanh")` does them at '
            'once (transformers calls it "gelu_pytorch_tanh" in a model\'s configuration)'
        )
    else:
        at_once = "Use the operator that does it at once where there is one"
    what = "the model that calls it" if _is_foreign(case, place) else "this function"
    return f"{at_once}, else compile {what}{moved}."


def _rewrite(case: Case, place: Place) -> Rewrite | None:
    """The function of the place with `@torch.compile` above it, where it is plain enough for that."""
    module = module_of(place.file, case.modules)
    compiler = spelled(module, "torch.compile") if module is not None else None
    if module is None or compiler is None or place.line is None:
        return None
    around = [
        node
        for node in module.nodes(ast.FunctionDef)
        if node.lineno <= place.line <= (node.end_lineno or node.lineno) and node.name == place.function
    ]
    if len(around) != 1 or around[0].decorator_list:
        return None
    above = insert_before(module, around[0], f"@{compiler}")
    return None if above is None else rewritten(module, [above])


def _is_foreign(case: Case, place: Place) -> bool:
    """Whether the function is none of the program's own, so that nothing can be written above it."""
    return bool(case.modules) and place.file is not None and module_of(place.file, case.modules) is None


def _largest(points: list[tuple[int, RoofPoint]]) -> int:
    return max((point.num_bytes or 0) // max(point.calls, 1) for _, point in points)


def _place(case: Case, names: list[str]) -> Place:
    """The function that runs most of them, and the line of it."""
    trace = case.trace
    line, _ = next(callers_of(trace, set(names)), (None, 0)) if trace is not None else (None, 0)
    if line is None:
        return Place(op=names[0])
    main = max(line.top_ops, key=lambda op: (op.name in names, op.device_ns, op.host_ns))
    place = place_of_operator(case, main.name)
    return _at_longest_line(case, line, place)


def _at_longest_line(case: Case, where: Located, place: Place) -> Place:
    """The line in the function at a spot with the longest expression of elementwise operators."""
    function = function_at(where, case.modules)
    if function is None:
        return place
    statements = [
        node
        for node in ast.walk(function[1])
        if isinstance(node, (ast.Assign, ast.Return, ast.AugAssign, ast.Expr))
    ]
    longest = max(statements, key=_num_pointwise, default=None)
    if longest is None or not _num_pointwise(longest):
        return place
    return msgspec.structs.replace(place, line=longest.lineno)


def _num_pointwise(statement: ast.stmt) -> int:
    return sum(
        isinstance(node, (ast.BinOp, ast.UnaryOp))
        or (isinstance(node, ast.Call) and f"aten::{last_name(node.func)}" in POINTWISE)
        for node in ast.walk(statement)
    )
