"""A model is asked for one sample at a time, in a loop whose rounds do not depend on each other.

## What it does
Finds calls of a model with a single sample, given the dimension of a batch by `unsqueeze(0)`, `[None]` or `torch.tensor([x])`, in a loop or
comprehension (or in a function that one calls) of which no round needs the answer of another. It speaks where such calls take a good
part of the step and are short, so that most of each is dispatch.

## Why it costs
Each layer costs the host the same for one sample as for many. A small network of convolutions answered 128 boards 3 times as fast in
one batch as one by one on a CPU core; a GPU gains more.

## Example
```python
answers = []
for sample in samples:
    answers.append(model(sample.unsqueeze(0))[0])
```

## Use instead
```python
answers = list(model(torch.stack(samples)))
```
Samples of different sizes are sorted by size and padded within a batch.

## Fix safety
No fix is applied: sums in another order may round differently, and batch norm in training mode sees other statistics.

## References
- PyTorch, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- NVIDIA, Deep Learning Performance Guide: https://docs.nvidia.com/deeplearning/performance/dl-performance-gpu-background/index.html
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.host.patterns.loop_runs import Walked, carries_over, element_of
from pyrometer.rules.host.patterns.spending import costly_lines, spread
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.source.index import last_name
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLine, HostProfile

RULE = declare(
    code="PYR136",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.3, "of the step: what lies beside the calls stays"),
        Limit("max_call_s", 3e-3, "a longer call is mostly work, which a batch does as well"),
    ),
)

LEFT_AT_BEST = 0.1
LEFT_AT_WORST = 0.7
"""Of the calls' time: small networks took a third to a tenth of it in batches."""

MAKES_TENSORS = frozenset({"torch.tensor", "torch.as_tensor", "torch.stack", "numpy.array", "numpy.asarray"})
MOVES = frozenset({"to", "cuda", "float", "double", "half", "long", "contiguous"})
LIBRARIES = ("torch.", "torchvision.", "numpy.")
NO_MODELS = frozenset({*dir(builtins), "append", "extend", "insert", "add", "put"})
"""What samples are given to, too."""

COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Rounds = ast.For | COMPREHENSIONS


@RULE.in_evidence("host", "source")
def explain(case: Case) -> Findings:
    """The line that takes the most of them."""
    profile = case.host
    assert profile is not None
    for module, line, link, share in costly_lines(case, case.limit(RULE, "min_share")):
        loop = _loop_of(module, line)
        call_s = line.total_s / _calls(profile, line)
        if loop is None or call_s > case.limit(RULE, "max_call_s"):
            continue
        place, certain = place_of(case, line.where), spread(profile, share)
        over = one_line(ast.unparse(loop.iter if isinstance(loop, ast.For) else loop.generators[0].iter))
        yield RULE.finding(
            message=f"the model is asked for one sample at a time, {format_seconds(call_s)} each: {format_percent(share)} of the step; rounds of "
            f"the loop over `{over}` (line {loop.lineno}) do not need each other's answers",
            where=place,
            evidence={"share": share, "call_s": call_s},
            links=[link],
            cost=case.cost_of(share, "samples of the host's time in these calls"),
            gain=Gain(
                ratio_low=1 - (1 - LEFT_AT_BEST) * certain.most,
                ratio_high=1 - (1 - LEFT_AT_WORST) * certain.least,
                method="bound: what small networks took in batches",
            ),
            confidence="medium",
            advice=f"Collect the samples of the loop in line {loop.lineno} first, `torch.stack` them (sorted by size and padded where sizes differ), and ask the model "
            "once for all, or in batches that fit into memory.",
            resource="launch",
        )
        return


def _calls(profile: HostProfile, line: HostLine) -> float:
    """How often a step comes to a line: by the loop around it, else by its function, where these were counted."""
    loop = line.loop
    if loop is not None:
        rounds = (each.rounds_per_step for each in profile.loops if each.where.text == loop.text)
    else:
        name = line.where.function
        rounds = (each.calls_per_step for each in profile.functions if each.where.function == name)
    return max(next(rounds, None) or 1.0, 1.0)


def _loop_of(module: Module, line: HostLine) -> Rounds | None:
    """The loop that asks a model in this line for single samples, where its rounds are free and train nothing."""
    calls = (call for call in module.nodes(ast.Call) if call.lineno == line.where.line)
    asked = next((call for call in calls if _asks_for_one(module, call)), None)
    if asked is None:
        return None
    loop = _innermost(module, asked)
    around = module.function_of(asked)
    if loop is None and around is not None:
        callers = (call for call in module.nodes(ast.Call) if last_name(call.func) == around.name)
        loops = (_innermost(module, call) for call in callers)
        loop = next((found for found in loops if found is not None), None)
    if not isinstance(loop, Rounds) or element_of((module, loop)) is not None or carries_over(module, loop):
        return None
    return None if isinstance(loop, ast.For) and module.heat.loops.trains(loop) else loop


def _asks_for_one(module: Module, call: ast.Call) -> bool:
    """Whether something of the program's own is called with what has just got the dimension of a batch."""
    if (module.name_of(call.func) or "").startswith(LIBRARIES) or last_name(call.func) in NO_MODELS:
        return False
    if isinstance(call.func, ast.Attribute) and module.value_of(call.func.value).is_tensor:
        return False
    return bool(call.args) and _is_single(module, call.args[0])


def _is_single(module: Module, given: ast.expr, *, by_name: bool = True) -> bool:
    """Whether it is a batch of one, as it is written or as the name got it: `x.unsqueeze(0)`, `x[None]`, `torch.tensor([x])`."""
    single = False
    match given:
        case ast.Subscript(slice=ast.Constant(value=None) | ast.Tuple(elts=[ast.Constant(value=None), *_])):
            single = True
        case ast.Name() if by_name:
            values = module.assignments(given.id, given)
            in_round = [value for value in values if _innermost(module, value) is _innermost(module, given)]
            single = len(values) == len(in_round) == 1 and _is_single(module, values[0], by_name=False)
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[dimension]):
            single = module.literal(dimension) == 0
        case ast.Call(func=ast.Attribute(attr="view" | "reshape"), args=[size, _, *_]):
            single = module.literal(size) == 1
        case ast.Call(func=function, args=[ast.List(elts=[row]), *_]):
            single = module.name_of(function) in MAKES_TENSORS and not isinstance(row, ast.Starred)
        case ast.Call(func=ast.Attribute(value=inner, attr=moved)):
            single = moved in MOVES and _is_single(module, inner, by_name=by_name)
    return single


def _innermost(module: Module, node: ast.AST) -> Walked | None:
    """The loop or comprehension that repeats a node within its function."""
    loops = module.loops_around(node)
    for above in module.ancestors(node):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        if isinstance(above, Walked) and (above in loops or isinstance(above, COMPREHENSIONS)):
            return above
    return None
