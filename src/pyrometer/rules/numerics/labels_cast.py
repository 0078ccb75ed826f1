"""Labels, indices or positions are cast to a dtype that cannot hold them.

## What it does
Watches casts of whole numbers to floating-point numbers, and counts the values that are another number afterwards. In source text
it finds labels and indices that are cast to float16 or bfloat16, a whole batch that is cast without regard to its dtypes, and
`torch.arange` in a half dtype.

## Why it costs
Above 2048 float16 holds only every second whole number, and bfloat16 above 256 already: classes, tokens and positions are
exchanged for their neighbours in silence, and the model learns from wrong labels. Of the numbers below 1000, bfloat16 changes 494.

## Example
```python
import torch

batch = {name: value.to(device, torch.bfloat16) for name, value in batch.items()}
positions = torch.arange(4096, dtype=torch.bfloat16)
```

## Use instead
Cast what is floating-point, and leave the rest as it is; compute positions in float32 and cast the result.
```python
import torch

batch = {
    name: value.to(device, torch.bfloat16 if value.is_floating_point() else None) for name, value in batch.items()
}
positions = torch.arange(4096, dtype=torch.float32)
```

## Fix safety
No fix is applied: the values change, to what they were meant to be.

## References
- PyTorch, torch.finfo and torch.iinfo: https://docs.pytorch.org/docs/stable/type_info.html
- PyTorch, Numerical accuracy: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyrometer.rules.match import Matches, match
from pyrometer.rules.numerics.patterns.half import EXACT_UP_TO, cast_to_low, low_dtype
from pyrometer.rules.numerics.patterns.origins import spoken
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR707", severity="error", fix_class="semantic")

WHOLE = re.compile(
    r"^(labels?|class_(ids?|labels?|indices)|token_ids|input_ids|position_ids|(\w+_)?(idx|index|indices|ids))$"
)
"""Names of what is whole numbers by its nature; `targets` may be anything."""
FLOATING = re.compile(r"one_?hot|soft|smooth|prob|weight|mixup|onehot")
BATCH = re.compile(r"(^|_)(batch|inputs|sample|data|samples|features)$")
ADVICE = "Keep whole numbers in int64, and cast only what is floating-point: `value.is_floating_point()`."


@RULE.in_source
def find(module: Module) -> Matches:
    """Whole numbers that are cast to half precision."""
    if not module.imports_torch:
        return
    for node, message in _casts(module):
        region = module.region(node)
        if not (region.test or region.scripted):
            yield match(node, message, advice=ADVICE, confidence="medium")


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """Casts after which some whole numbers are others."""
    casts = case.numerics.casts if case.numerics is not None else []
    for index, cast in enumerate(casts):
        if cast.num_changed:
            what = f"input {cast.name}" if cast.name is not None else "whole numbers"
            yield RULE.finding(
                message=(
                    f"{cast.num_changed} of {cast.num_values} values of {what} are other numbers after the cast from "
                    f"{cast.from_dtype} to {cast.to_dtype} in {spoken(cast.where)}"
                ),
                where=place_of(case, cast.where),
                evidence={
                    "num_changed": cast.num_changed,
                    "num_values": cast.num_values,
                    "largest": cast.largest,
                    "from_dtype": cast.from_dtype,
                    "to_dtype": cast.to_dtype,
                    "input": cast.name,
                },
                links=[f"/numerics/casts/{index}"],
                confidence="high",
                advice=f"{ADVICE} Up to {cast.largest} float32 or int64 is needed.",
            )


def _casts(module: Module) -> Iterator[tuple[ast.Call, str]]:
    for call in module.method_calls("half", "bfloat16", "to", "type"):
        cast = cast_to_low(module, call)
        if cast is None:
            continue
        value, dtype = cast
        if _is_whole(value):
            yield (
                call,
                f"`{module.source(value)}` is cast to {dtype}, which holds whole numbers to {EXACT_UP_TO[dtype]} only",
            )
        elif _is_any_of_a_batch(module, call, value):
            yield call, f"every tensor of the batch is cast to {dtype}, labels and indices too"
    for call in module.calls("torch.arange"):
        asked = low_dtype(module, module.keyword(call, "dtype"))
        if asked is not None and _end(module, call) > EXACT_UP_TO[asked]:
            yield call, f"`torch.arange` in {asked} repeats and skips numbers above {EXACT_UP_TO[asked]}"


def _is_whole(value: ast.expr) -> bool:
    """Whether a name, an attribute or an entry of a dict is called as whole numbers are."""
    if isinstance(value, ast.Name):
        name = value.id
    elif isinstance(value, ast.Attribute):
        name = value.attr
    elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        name = str(value.slice.value)
    else:
        return False
    return WHOLE.match(name.lower()) is not None and FLOATING.search(name.lower()) is None


def _is_any_of_a_batch(module: Module, call: ast.Call, value: ast.expr) -> bool:
    """Whether the value runs over all of a batch, in a comprehension that does not ask for its dtype."""
    around = next(
        (
            above
            for above in module.ancestors(call)
            if isinstance(above, ast.DictComp | ast.ListComp | ast.GeneratorExp)
        ),
        None,
    )
    if (
        around is None
        or not isinstance(value, ast.Name)
        or "float" in module.source(around).replace("bfloat16", "").replace("float16", "")
    ):
        return False
    loop = around.generators[0]
    over = loop.iter
    if loop.ifs or any(isinstance(part, ast.IfExp) for part in ast.walk(around)):
        return False
    if (
        isinstance(over, ast.Call)
        and isinstance(over.func, ast.Attribute)
        and over.func.attr in {"items", "values"}
    ):
        over = over.func.value
    targets = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    return value.id in targets and isinstance(over, ast.Name) and BATCH.search(over.id) is not None


def _end(module: Module, call: ast.Call) -> float:
    """Where `arange` ends; as large as it may be where the text does not say."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or not call.args:
        return 0.0
    end = module.literal(call.args[min(len(call.args) - 1, 1)])
    if len(call.args) > 2 and not isinstance(module.literal(call.args[2]), int):
        return 0.0  # with a step that is a fraction the numbers are no counts
    return float(end) if isinstance(end, int | float) else float("inf")
