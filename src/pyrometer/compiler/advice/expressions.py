"""What can be said of an expression from its text alone: one element, a truth value, elementwise.

These are the facts that make a rewrite certain. Where the text does not prove one, the answer is no.
"""

from __future__ import annotations

import ast
import copy
from typing import NamedTuple

from pyrometer.compiler.advice.site import Site

REDUCTIONS = frozenset(
    [
        "sum",
        "mean",
        "max",
        "min",
        "any",
        "all",
        "norm",
        "prod",
        "std",
        "var",
        "median",
        "amax",
        "amin",
        "argmax",
        "argmin",
        "count_nonzero",
    ]
)
"""Without arguments these give one element of no dimension."""

TRUTHS = frozenset({"any", "all"})
SAME = frozenset({"abs", "neg", "relu", "square", "clone", "detach", "clamp"})
"""Elementwise, dtype kept, finite gradient wherever the input is finite."""
FLOAT = frozenset({"sin", "cos", "tanh", "sigmoid", "gelu", "silu", "softplus"})
"""The same, with floating-point results."""
CURVED = frozenset({"exp", "log", "sqrt", "rsqrt", "log1p", "expm1", "log2", "log10", "tan", "reciprocal"})
"""The same, with a gradient that is not finite everywhere."""
PREFIXES = ("torch.nn.functional.", "torch.special.", "torch.")
CONVERSIONS = frozenset({"bool", "float"})
COMPARISONS = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)


class Form(NamedTuple):
    """An elementwise expression: its result has the shape that these names broadcast to."""

    names: frozenset[str]
    floating: bool
    """Whether something in it makes integers into floating-point numbers."""


def operation(site: Site, node: ast.AST) -> tuple[str, list[ast.expr]] | None:
    """Name and operands of `torch.f(x, …)` or `x.f(…)`, without keywords; `None` if it is no such call."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    full = site.full_name(node.func)
    for prefix in PREFIXES:
        if full.startswith(prefix) and "." not in full[len(prefix) :]:
            return full[len(prefix) :], node.args
    if isinstance(node.func, ast.Attribute) and not site.is_imported(node.func.value):
        return node.func.attr, [node.func.value, *node.args]
    return None


def is_reduction(site: Site, node: ast.AST) -> bool:
    """Whether this reduces a whole tensor to one element without a dimension.

    >>> is_reduction(*_example("x.sum()")), is_reduction(*_example("x.sum(0)"))
    (True, False)
    """
    found = operation(site, node)
    return found is not None and found[0] in REDUCTIONS and len(found[1]) == 1


def is_single(site: Site, node: ast.AST) -> bool:
    """Whether this is a tensor of one element without a dimension, for certain."""
    if is_reduction(site, node):
        return True
    match node:
        case ast.BinOp(left=left, right=right):
            one, other = is_single(site, left), is_single(site, right)
            return (one and (other or stands_for_number(site, right))) or (
                other and stands_for_number(site, left)
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return is_single(site, operand)
    found = operation(site, node)
    return (
        found is not None and found[0] in SAME | FLOAT and len(found[1]) == 1 and is_single(site, found[1][0])
    )


def is_number(node: ast.AST) -> bool:
    """Whether this is a number written out."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return is_number(operand)
    return False


def stands_for_number(site: Site, node: ast.AST) -> bool:
    """Whether this is a number written out, or a name that the file gives one once and for all."""
    return is_number(node) or (isinstance(node, ast.Name) and site.constant(node.id) is not None)


def truth(site: Site, test: ast.expr) -> str | None:
    """The truth value of a test as text for a boolean tensor without dimension; `None` if unsure.

    The test itself must be known to be a tensor, or a number taken out of one; parts of `and` and `or` must show it.

    >>> truth(*_example("x.sum().item() > 0")), truth(*_example("flag"))
    ('x.sum() > 0', '(flag != 0).reshape(())')
    >>> truth(*_example("x.any() and not y.all()")), truth(*_example("ready and x.any()"))
    ('x.any() & ~y.all()', None)
    """
    plain = kept_as_tensor(site, test)
    return _truth(site, plain)


def kept_as_tensor(site: Site, node: ast.expr) -> ast.expr:
    """The expression without what takes numbers out of tensors: `.item()`, `bool(…)`, `float(…)`; allclose made a tensor."""
    return _Kept(site).visit(copy.deepcopy(node))  # type: ignore[no-any-return]


def elementwise(site: Site, node: ast.AST) -> Form | None:
    """The form of an expression that is elementwise, pure, and has a finite gradient everywhere.

    The last matters where both sides of a choice are computed: `where` hands a zero gradient to the side that was not
    chosen, and zero times infinity is not zero.

    >>> sorted(elementwise(*_example("x * 2 - x.sum()")).names), elementwise(*_example("x.log()"))
    (['x'], None)
    """
    form: Form | None = None
    match node:
        case ast.Constant(value=value) if is_number(node):
            form = Form(frozenset(), isinstance(value, float))
        case ast.Name(id=name) if (number := site.constant(name)) is not None:
            form = Form(frozenset(), isinstance(number, float))
        case ast.Name() | ast.Attribute():
            dotted = ast.unparse(node)
            if dotted.replace(".", "").isidentifier():
                form = Form(frozenset({dotted}), floating=False)
        case (
            ast.UnaryOp(op=ast.USub(), operand=inner)
            | ast.BinOp(left=inner, op=ast.Pow(), right=ast.Constant(value=2))
        ):
            form = elementwise(site, inner)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            form = _joined(elementwise(site, left), elementwise(site, right))
        case ast.BinOp(left=left, op=ast.Div(), right=right) if is_number(right) and ast.literal_eval(right):
            form = _joined(elementwise(site, left), Form(frozenset(), floating=True))
        case ast.Call():
            form = _called(site, node)
    return form


def pointwise_of(site: Site, node: ast.AST) -> Form | None:
    """The form of an expression that is elementwise over names and numbers alone, whatever its gradient.

    Two of one name and one form give tensors of one shape and dtype; reductions are left out, for their dtypes differ.

    >>> pointwise_of(*_example("x.exp() / x")) == pointwise_of(*_example("x.sqrt()")), pointwise_of(*_example("x.sum()"))
    (True, None)
    """
    match node:
        case ast.Name() | ast.Attribute() | ast.Constant():
            return elementwise(site, node)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return pointwise_of(site, inner)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=right):
            joined = _joined(pointwise_of(site, left), pointwise_of(site, right))
            return _joined(joined, Form(frozenset(), isinstance(op, ast.Div)))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if power > 0:
            return pointwise_of(site, left)
    found = operation(site, node)
    if found is None or len(found[1]) != 1 or found[0] not in (SAME | FLOAT | CURVED) - {"detach"}:
        return None
    return _joined(pointwise_of(site, found[1][0]), Form(frozenset(), found[0] in FLOAT | CURVED))


def has_effects(node: ast.AST) -> bool:
    """Whether an expression assigns, awaits, yields, or calls a method that works in place."""
    return any(
        isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        or (isinstance(part, ast.Attribute) and part.attr.endswith("_") and not part.attr.endswith("__"))
        for part in ast.walk(node)
    )


def shows_tensor(site: Site, node: ast.AST) -> bool:
    """Whether a reduction of a tensor stands somewhere in an expression."""
    return any(is_reduction(site, part) for part in ast.walk(node))


def bracketed(text: str) -> str:
    """An expression's text, in brackets unless it binds as tightly as a call."""
    return text if _binds_tightly(ast.parse(text, mode="eval").body) else f"({text})"


def _called(site: Site, node: ast.AST) -> Form | None:
    found = operation(site, node)
    if found is None or not found[1]:
        return None
    name, (first, *rest) = found
    form = elementwise(site, first)
    if form is None or (rest and not (name == "clamp" and all(map(is_number, rest)))):
        return None
    if name in {"sum", "mean", "max", "min"}:  # one element: takes part in no shape
        return Form(frozenset(), form.floating or name == "mean")
    return _joined(form, Form(frozenset(), name in FLOAT)) if name in SAME | FLOAT else None


def _joined(one: Form | None, other: Form | None) -> Form | None:
    if one is None or other is None:
        return None
    return Form(one.names | other.names, one.floating or other.floating)


def _truth(site: Site, node: ast.expr) -> str | None:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _truth(site, operand)
            return None if inner is None else f"~{bracketed(inner)}"
        case ast.BoolOp(op=op, values=values):
            parts = [_truth(site, value) if shows_tensor(site, value) else None for value in values]
            sign = " & " if isinstance(op, ast.And) else " | "
            return None if None in parts else sign.join(bracketed(part or "") for part in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, COMPARISONS):
            flat = all(is_single(site, side) or stands_for_number(site, side) for side in (left, right))
            return ast.unparse(node) if flat else f"({ast.unparse(node)}).reshape(())"
        case ast.Compare() | ast.Constant() | ast.IfExp() | ast.Lambda():
            return None
    return None if has_effects(node) else _not_zero(site, node)


def _not_zero(site: Site, node: ast.expr) -> str:
    """The truth of something that is no comparison: it is what differs from zero."""
    found = operation(site, node)
    if is_reduction(site, node) and found is not None and found[0] in TRUTHS:
        return ast.unparse(node)
    text = f"({bracketed(ast.unparse(node))} != 0)"
    return text if is_single(site, node) else f"{text}.reshape(())"


def _binds_tightly(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
    )


class _Kept(ast.NodeTransformer):
    def __init__(self, site: Site) -> None:
        self.site = site

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
                return value
            case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]) if name in CONVERSIONS:
                return value if shows_tensor(self.site, value) else node
        if self.site.full_name(node.func) == "torch.allclose" and isinstance(node.func, ast.Attribute):
            close = ast.Attribute(node.func.value, "isclose", ast.Load())
            return ast.Call(
                ast.Attribute(ast.Call(close, node.args, node.keywords), "all", ast.Load()), [], []
            )
        return node


def _example(text: str) -> tuple[Site, ast.expr]:
    """For the examples above: an expression of a file that imports torch."""
    return Site.of_text("import torch\n"), ast.parse(text, mode="eval").body
