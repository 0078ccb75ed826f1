"""Operators compute in float64.

## What it does
Adds up the operators of a trace whose tensors are float64, and speaks where they take a good part of the step. It names the line where
the type comes in, where the source shows one: an array of NumPy without another type, `.double()`, `torch.float64`.

## Why it costs
Twice the bytes, and half of the numbers in a vector: matrix products, sums and copies take about twice as long, `tanh` and `exp` more.
Most graphics processors have a thirtieth or less of their units for it. NumPy makes float64 unless told otherwise, and one such operand
makes the result float64, and all that is computed from it.

## Example
```python
mix = torch.from_numpy(np.random.normal(size=(512, 512)))
scores = torch.tanh(x.double() @ mix)
```

## Use instead
```python
mix = torch.from_numpy(np.random.normal(size=(512, 512)).astype(np.float32))
scores = torch.tanh(x @ mix)
```

## Fix safety
No fix is applied: results have seven digits instead of sixteen. Where that is not enough (long sums, inverses), keep float64 there alone.

## References
- PyTorch, Type promotion: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
- NumPy, Data types: https://numpy.org/doc/stable/user/basics.types.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.kernels.patterns.operators import (
    cost_of,
    index_of,
    place_of_point,
    shapes_of,
    span_share,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare
from pyrometer.rules.untraced import untraced
from pyrometer.source.value import Kind
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import RoofPoint

RULE = declare(
    code="PYR517",
    severity="warning",
    fix_class="tolerance",
    limits=(Limit("min_share", 0.1, "of the time: float32 saves about half of it"),),
)

NAMED = ("torch.float64", "torch.double", "numpy.float64", "numpy.double")
FROM_ARRAY = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
MAKING = frozenset(
    {
        "zeros",
        "ones",
        "empty",
        "full",
        "linspace",
        "array",
        "asarray",
        "eye",
        "arange",
        "normal",
        "random",
        "rand",
        "randn",
        "uniform",
        "standard_normal",
    }
)
"""Functions of NumPy whose results are float64 unless told otherwise."""


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """All such operators together, at the line where the type comes in."""
    trace = case.trace
    if trace is None:
        return
    points = [point for point in trace.roofline if point.arithmetic == "float64" and any(shapes_of(point))]
    share = min(1.0, sum(span_share(trace, point) for point in points))
    if not points or share < case.limit(RULE, "min_share"):
        return
    spent = max(points, key=lambda point: point.time_ns)
    where = place_of_point(case, spent)
    origin = _origin(case, spent)
    place = where if origin is None else origin[0]
    begins = "" if origin is None else f"; the type comes in by `{origin[1]}`{spoken(place)}"
    yield RULE.finding(
        message=f"operators on float64 take {format_percent(share)} of the time, most of it {spent.op}{spoken(where)}{begins}",
        where=place,
        evidence={"share": share, "operators": list(dict.fromkeys(point.op or "" for point in points))},
        links=[link for link in [index_of(trace, {spent.op or ""})] if link is not None],
        cost=cost_of(case, share, "time of operators on float64"),
        gain=untraced(case, share).gain(
            "bound: float32 moves half of the bytes; at best casts go, too, and functions such as tanh take a third",
            best=0.7,
            worst=0.35,
        ),
        confidence="high" if origin is not None else "medium",
        advice="Make it float32 where it comes in: `.astype(np.float32)` or `dtype=` for arrays, `torch.float32` for tensors, and no `.double()` "
        "on the way. Keep float64 only where the digits are needed.",
        resource=f"op:{spent.op}",
    )


def _origin(case: Case, spent: RoofPoint) -> tuple[Place, str] | None:
    """The line where float64 comes in: in code that runs each step before set-up, the file of the operator before others."""
    found = [(module, node) for module in case.modules for node in _origins(module)]
    file = (spent.file or "").rpartition("/")[2]
    if not found:
        return None
    module, node = min(
        found,
        key=lambda hit: (
            hit[0].path.rpartition("/")[2] != file,
            hit[0].hot(hit[1]) is None,
            _rank(hit[1]),
            hit[1].lineno,
        ),
    )
    function = module.function_of(node)
    place = Place(file=module.path, line=node.lineno, function=None if function is None else function.name)
    return place, one_line(module.source(node))


def _rank(node: ast.expr) -> int:
    """What says float64 in so many words comes after what brings it in unsaid."""
    return 0 if isinstance(node, ast.Call) else 1


def _origins(module: Module) -> Iterator[ast.expr]:
    """Expressions that make tensors of float64."""
    for call in module.method_calls("double"):
        if not call.args:
            yield call
    for node in module.nodes(ast.Attribute, ast.Name):
        if module.name_of(node) in NAMED:
            yield node
    for call in module.calls(*FROM_ARRAY):
        if call.args and module.keyword(call, "dtype") is None and _is_array_of_double(module, call):
            yield call


def _is_array_of_double(module: Module, call: ast.Call) -> bool:
    """Whether a tensor is made of an array whose type nobody set."""
    above = module.parent(call)
    if isinstance(above, ast.Attribute) and above.attr in {
        "float",
        "half",
        "bfloat16",
        "long",
        "int",
        "bool",
        "to",
        "type",
    }:
        return False
    given = call.args[0]
    sources = module.assignments(given.id, given) if isinstance(given, ast.Name) else [given]
    made = [
        node
        for source in (sources or [given])
        for node in ast.walk(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    if any(
        node.func.attr == "astype" or module.keyword(node, "dtype") is not None
        for node in made
        if isinstance(node.func, ast.Attribute)
    ):
        return False
    return module.value_of(given).kind is Kind.ARRAY or any(
        node.func.attr in MAKING for node in made if isinstance(node.func, ast.Attribute)
    )
