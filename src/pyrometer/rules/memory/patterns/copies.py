"""Copies: which operators make them, where the source asks for them, and which are needless by their text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.place import Place
from pyrometer.rules.joining import function_at
from pyrometer.rules.memory.patterns.spent import Spent
from pyrometer.rules.rule import Case, Module
from pyrometer.source.names import MISSING


class Cause(NamedTuple):
    """What makes the user's code copy."""

    methods: tuple[str, ...]
    """Whose call in the source asks for it."""
    what: str
    advice: str
    sure: float = 0.0
    """Part of its time that goes at worst: whoever reads a view may lose as much."""


CASTS = {
    "float": "torch.float32",
    "double": "torch.float64",
    "half": "torch.float16",
    "bfloat16": "torch.bfloat16",
    "int": "torch.int32",
    "long": "torch.int64",
}
"""Methods that cast, and to what."""

_LAYOUT = (
    "Read the view as it is, keep the tensor in the order in which it is read, or copy once before the loop."
)

CAUSES = {
    "aten::contiguous": Cause(("contiguous",), "Making a tensor contiguous", _LAYOUT),
    "aten::reshape": Cause(
        ("reshape", "view_as"),
        "A reshape that has to copy",
        "Keep the dimensions in the order in which they are merged.",
    ),
    "aten::flatten": Cause(
        ("flatten",),
        "A flatten that has to copy",
        "Keep the dimensions in the order in which they are merged.",
    ),
    "aten::clone": Cause(
        ("clone",), "Cloning a tensor", "Leave the clone out where nothing writes into it.", sure=0.5
    ),
    "aten::repeat": Cause(
        ("repeat",), "Repeating a tensor", "Use `expand`, which repeats without copying.", sure=0.5
    ),
    "aten::to": Cause(
        (*CASTS, "to", "type", "type_as"),
        "Casting a tensor",
        "Compute in the dtype that it has, or cast once where it is made, before the loop.",
        sure=0.5,
    ),
}
"""Operators that copy when the user calls them, by name in a trace."""


def asked_at(spent: Spent, case: Case) -> list[Place]:
    """The lines of a function that ask for a copy of this kind; empty without its source."""
    found = function_at(spent.function, case.modules)
    if found is None:
        return []
    module, function = found
    calls = [
        call
        for call in module.method_calls(*CAUSES[spent.name].methods)
        if module.function_of(call) is function and (spent.name != "aten::to" or _casts(module, call))
    ]
    lines = list(dict.fromkeys(call.lineno for call in calls))
    return [Place(file=module.path, line=line, function=function.name, op=spent.name) for line in lines]


def _casts(module: Module, call: ast.Call) -> bool:
    """Whether a call changes the dtype; `to` of a device moves."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr in CASTS or call.func.attr in ("type", "type_as"):
        return True
    given = [*call.args, *([dtype] if (dtype := module.keyword(call, "dtype")) is not None else [])]
    return any(_dtype(module, node) is not None for node in given)


def _dtype(module: Module, expression: ast.expr) -> str | None:
    """The dtype that an expression names, or its text where it is some tensor's dtype."""
    name = module.name_of(expression)
    if name is not None and name in {
        *CASTS.values(),
        "torch.float",
        "torch.double",
        "torch.half",
        "torch.int",
        "torch.long",
    }:
        return name
    if isinstance(expression, ast.Attribute) and expression.attr == "dtype":
        return module.source(expression)
    return None


class NeedlessCopy(NamedTuple):
    """A copy that nothing needs, as far as the expression itself tells."""

    node: ast.expr
    fact: str
    instead: str


def needless_copies(module: Module) -> Iterator[NeedlessCopy]:
    """Copies that are needless by their text alone."""
    for index in module.nodes(ast.Subscript):
        if isinstance(index.ctx, ast.Load):
            yield from (copy for copy in _run(module, index) if module.value_of(index.value).is_tensor)
    for call in module.method_calls("half", "bfloat16", "float"):
        yield from _doubled(module, call)


def _run(module: Module, index: ast.Subscript) -> Iterator[NeedlessCopy]:
    """An index that lists consecutive positions."""
    parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
    runs = [_bounds(module, part) for part in parts]
    if sum(run is not None for run in runs) != 1 or any(
        not isinstance(part, ast.Slice) and run is None and not _is_full(part)
        for part, run in zip(parts, runs, strict=True)
    ):
        return
    sources = [module.source(part) if run is None else run for part, run in zip(parts, runs, strict=True)]
    text = f"{module.source(index.value)}[{', '.join(sources)}]"
    yield NeedlessCopy(index, "copies consecutive positions, which a slice would only look at", text)


def _is_full(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is Ellipsis


def _bounds(module: Module, part: ast.expr) -> str | None:
    """A list or a range of consecutive positions as a slice."""
    if isinstance(part, ast.List):
        literal = module.literal(part)
        if literal is MISSING or not isinstance(literal, list) or len(literal) < 2:
            return None
        first = literal[0]
        if not isinstance(first, int) or isinstance(first, bool) or first < 0:
            return None
        return (
            f"{first}:{first + len(literal)}" if literal == list(range(first, first + len(literal))) else None
        )
    if (
        isinstance(part, ast.Call)
        and module.name_of(part.func) in ("torch.arange", "range")
        and 1 <= len(part.args) <= 2
    ):
        if any(isinstance(arg, ast.UnaryOp) for arg in part.args):
            return None
        return ":".join(
            ["" if len(part.args) == 1 else module.source(part.args[0]), module.source(part.args[-1])]
        )
    return None


def _doubled(module: Module, call: ast.Call) -> Iterator[NeedlessCopy]:
    """A cast that the next call casts again."""
    assert isinstance(call.func, ast.Attribute)
    inner = call.func.value
    if (
        not isinstance(inner, ast.Call)
        or not isinstance(inner.func, ast.Attribute)
        or not module.value_of(inner).is_tensor
    ):
        return
    outer, cast = call.func.attr, inner.func.attr
    if not inner.args and (outer, cast) in _WIDER:
        text = f"{module.source(inner.func.value)}.{outer}()"
        yield NeedlessCopy(call, "casts twice, and only the second cast stays", text)


_WIDER = {
    ("half", "double"),
    ("half", "float"),
    ("bfloat16", "float"),
    ("bfloat16", "double"),
    ("float", "double"),
}
"""Casts after which the wider one before was for nothing: it changes no value, unless integers were cast."""
