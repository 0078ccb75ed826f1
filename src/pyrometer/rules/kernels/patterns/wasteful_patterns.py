"""Expressions for which torch has an operator that does much less, and what it was measured to save.

Each entry is a search over a file; what stands here was faster on one CPU core by the figure beside it (new over old time, from
the most to the least that it saved). Left out, because they were not: `torch.pow(x, 2)` (torch squares by itself), a product
followed by an addition (`addmm` took 1.00 of it), a 3-d convolution with a kernel of 1×1×k (1.01 as a 2-d one).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyrometer.advice import FixClass
from pyrometer.rules.kernels.patterns.better import Better, bracketed
from pyrometer.rules.kernels.patterns.wasteful_products import (
    diagonal_matrix_times,
    inverse_times_matrix,
    one_hot_times_table,
    trace_of_product,
)
from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name
from pyrometer.source.rewriting import spelled


class Pattern(NamedTuple):
    """A kind of waste."""

    what: str
    why: str
    ops: frozenset[str]
    """Operators of a trace that the better one replaces."""
    left: tuple[float, float]
    """New over old time, best and worst that was measured."""
    fix_class: FixClass
    search: Callable[[Module], Iterator[Better]]


def sorted_to_keep_few(module: Module) -> Iterator[Better]:
    """A sort of which only the first few values, or the first, are used: `sort(x).values[:, :k]`."""
    for call in module.method_calls("sort", "argsort", "msort"):
        name = last_name(call.func)
        x, _ = _subject(module, call, "torch.")
        if x is None or not (_is_torch(module, call) or module.value_of(x).is_tensor):
            continue
        chosen = call if name in {"argsort", "msort"} else _part(module, call)
        taken = module.parent(chosen) if chosen is not None else None
        if chosen is None or not isinstance(taken, ast.Subscript) or taken.value is not chosen:
            continue
        if not _keeps_few(module, taken):
            continue
        is_index = name == "argsort" or _part_name(chosen) in {"indices", 1}
        yield Better(taken, _without_sort(module, call, taken, is_index=is_index) or "")


def _without_sort(module: Module, call: ast.Call, taken: ast.Subscript, *, is_index: bool) -> str | None:
    """What finds the same without sorting, where the index is surely of the sorted dimension."""
    x, arguments = _subject(module, call, "torch.")
    name, indices = (
        last_name(call.func),
        taken.slice.elts if isinstance(taken.slice, ast.Tuple) else [taken.slice],
    )
    options = dict(zip(("dim", "descending"), arguments, strict=False)) | {
        keyword.arg: keyword.value for keyword in call.keywords if keyword.arg
    }
    dim = 0 if name == "msort" else module.literal(options["dim"]) if "dim" in options else -1
    descending = module.literal(options["descending"]) if "descending" in options else False
    *others, last = indices
    behind_ellipsis = len(others) == 1 and isinstance(others[0], ast.Constant)
    is_same_dim = dim == -1 if behind_ellipsis else dim == len(others)
    if (
        x is None
        or options.keys() - {"dim", "descending"}
        or not isinstance(descending, bool)
        or not is_same_dim
    ):
        return None
    source = bracketed(module, x)
    if isinstance(last, ast.Constant) and last.value == 0:
        best = ("argmin", "argmax") if is_index else ("amin", "amax")
        return f"{source}.{best[descending]}({dim})"
    top = spelled(module, "torch.topk")
    if (
        not isinstance(last, ast.Slice)
        or last.upper is None
        or top is None
        or not isinstance(x, (ast.Name, ast.Attribute))
    ):
        return None
    number = f"min({module.source(last.upper)}, {source}.shape[{dim}])"
    largest = "" if descending else ", largest=False"
    return f"{top}({source}, {number}, dim={dim}{largest}).{'indices' if is_index else 'values'}"


def _part(module: Module, call: ast.Call) -> ast.expr | None:
    """`.values`, `.indices`, `[0]` or `[1]` of a sort."""
    above = module.parent(call)
    if isinstance(above, ast.Attribute) and above.attr in {"values", "indices"}:
        return above
    if isinstance(above, ast.Subscript) and above.value is call and _part_name(above) in {0, 1}:
        return above
    return None


def _part_name(node: ast.expr) -> object:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value
    return None


def _keeps_few(module: Module, taken: ast.Subscript) -> bool:
    """Whether an index keeps the first few, `[..., :k]`, or the first alone."""
    parts = taken.slice.elts if isinstance(taken.slice, ast.Tuple) else [taken.slice]
    *others, last = parts
    if not all(_is_whole(node) for node in others):
        return False
    if isinstance(last, ast.Constant) and last.value == 0 and others:
        return True
    if isinstance(last, ast.Slice) and last.lower is None and last.step is None and last.upper is not None:
        number = module.literal(last.upper)
        return not (isinstance(number, int) and number < 1)
    return False


def _is_whole(node: ast.expr) -> bool:
    if isinstance(node, ast.Slice):
        return node.lower is None and node.upper is None and node.step is None
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def softmax_before_argmax(module: Module) -> Iterator[Better]:
    """`softmax(x, d).argmax(d)`: softmax keeps the order."""
    for call in module.method_calls("argmax"):
        inner, arguments = _subject(module, call, "torch.")
        if not isinstance(inner, ast.Call) or last_name(inner.func) not in {"softmax", "log_softmax"}:
            continue
        x, options = _subject(module, inner, "torch.")
        dim = module.keyword(call, "dim") or (arguments[0] if arguments else None)
        along = module.keyword(inner, "dim") or (options[0] if options else None)
        if x is None or dim is None or along is None or module.source(dim) != module.source(along):
            continue
        if _is_torch(module, inner) or module.value_of(x).is_tensor:
            yield Better(inner, bracketed(module, x))


def pairwise_differences(module: Module) -> Iterator[Better]:
    """`(a[:, None] - b[None]).pow(2).sum(-1)` and `torch.norm(a[:, None] - b[None], dim=-1)`, also where their parts have names."""
    for call in module.method_calls("sum", "norm"):
        inner, arguments = _subject(module, call, "torch.")
        is_norm = last_name(call.func) == "norm"
        names = ("p", "dim") if is_norm else ("dim",)
        given = dict(zip(names, arguments, strict=False)) | {
            keyword.arg: keyword.value for keyword in call.keywords if keyword.arg
        }
        dim = given.pop("dim", None)
        if inner is None or dim is None or module.literal(dim) not in (-1, 2):
            continue
        p = given.pop("p", None)
        difference = _meant(module, inner) if is_norm else _squared(module, inner)
        sides = _broadcast_sides(module, difference)
        if sides is None or (p is not None and module.literal(p) not in (2, "fro")):
            continue
        name = spelled(module, "torch.cdist")
        text = f"{name}({sides[0]}, {sides[1]})"
        known = name is not None and not given and _has_two_dimensions(difference)
        known = known and difference is not None and _holds(inner, difference)
        yield Better(call, (text if is_norm else f"{text}.square()") if known else "")


def pairwise_products(module: Module) -> Iterator[Better]:
    """`cosine_similarity(a[:, None], b[None], dim=-1)` and `(a[:, None] * b[None]).sum(-1)`, also where their parts have names."""
    for call in module.method_calls("sum", "cosine_similarity"):
        first, arguments = _subject(module, call, "torch.")
        is_cosine = last_name(call.func) == "cosine_similarity"
        dim = module.keyword(call, "dim") or next(iter(arguments[is_cosine:]), None)
        if first is None or dim is None or module.literal(dim) not in (-1, 2):
            continue
        if is_cosine:
            other = module.keyword(call, "x2") or next(iter(arguments), None)
            pairs = None if other is None else _pairs(module, first, other)
        else:
            product = _meant(module, first)
            is_product = isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)
            pairs = _pairs(module, product.left, product.right) if is_product else None  # type: ignore[attr-defined]
        if pairs is not None:
            yield Better(call, "")


def _meant(module: Module, node: ast.expr) -> ast.expr:
    """What a name stands for that is given one value; anything else itself."""
    if not isinstance(node, ast.Name):
        return node
    given = module.assignments(node.id, node)
    return given[0] if len(given) == 1 and not isinstance(given[0], ast.Name) else node


def _holds(whole: ast.expr, part: ast.expr) -> bool:
    return any(node is part for node in ast.walk(whole))


def _has_two_dimensions(difference: ast.expr | None) -> bool:
    """Whether `a[:, None, :] - b[None, :, :]` says that both are matrices."""
    return isinstance(difference, ast.BinOp) and all(
        isinstance(side, ast.Subscript)
        and isinstance(side.slice, ast.Tuple)
        and len(side.slice.elts) == 3
        and not any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in side.slice.elts)
        for side in (difference.left, difference.right)
    )


def _squared(module: Module, node: ast.expr) -> ast.expr | None:
    node = _meant(module, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and module.literal(node.right) == 2:
        return _meant(module, node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _meant(module, node.left) if ast.dump(node.left) == ast.dump(node.right) else None
    if isinstance(node, ast.Call):
        x, arguments = _subject(module, node, "torch.")
        name = last_name(node.func)
        if x is not None and (
            name == "square" or (name == "pow" and arguments and module.literal(arguments[0]) == 2)
        ):
            return _meant(module, x)
    return None


def _broadcast_sides(module: Module, node: ast.expr | None) -> tuple[str, str] | None:
    """The two tensors of which all pairs are subtracted."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return None
    return _pairs(module, node.left, node.right)


def _pairs(module: Module, one: ast.expr, other: ast.expr) -> tuple[str, str] | None:
    """Two tensors whose rows are put against each other in all pairs."""
    left, right = _raised(module, one), _raised(module, other)
    if left is None or right is None or {left[1], right[1]} != {0, 1}:
        return None
    first, second = (left, right) if left[1] == 1 else (right, left)
    return first[0], second[0]


def _raised(module: Module, node: ast.expr) -> tuple[str, int] | None:
    """A tensor with a dimension put in, and where: `a[:, None]` and `a.unsqueeze(1)` are 1, `b[None]` is 0."""
    node = _meant(module, node)
    if (
        isinstance(node, ast.Call)
        and last_name(node.func) == "expand"
        and isinstance(node.func, ast.Attribute)
    ):
        node = _meant(module, node.func.value)
    if (
        isinstance(node, ast.Call)
        and last_name(node.func) == "unsqueeze"
        and isinstance(node.func, ast.Attribute)
    ):
        where = module.literal(node.args[0]) if node.args else None
        return (module.source(node.func.value), where) if isinstance(where, int) and where in {0, 1} else None
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        new = [i for i, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is None]
        rest = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
        if len(new) == 1 and new[0] in {0, 1} and all(_is_whole(part) for part in rest):
            return module.source(node.value), new[0]
    return None


def _subject(module: Module, call: ast.Call, prefix: str) -> tuple[ast.expr | None, list[ast.expr]]:
    """What a function or method works on, and its further arguments."""
    if isinstance(call.func, ast.Attribute) and not (module.name_of(call.func) or "").startswith(prefix):
        return call.func.value, list(call.args)
    return (call.args[0], list(call.args[1:])) if call.args else (None, [])


def _is_torch(module: Module, call: ast.Call) -> bool:
    return (module.name_of(call.func) or "").startswith("torch.")


PATTERNS = (
    Pattern("sorts all to keep a few", "torch.topk or amax find these without sorting the rest",
            frozenset(["aten::sort", "aten::argsort", "aten::msort"]), (0.001, 0.3), "tolerance", sorted_to_keep_few),
    Pattern("multiplies a one-hot matrix with a table", "embedding picks the rows",
            frozenset(["aten::one_hot", "aten::mm", "aten::matmul"]), (0.001, 0.21), "tolerance", one_hot_times_table),
    Pattern("inverts a matrix to multiply with it", "torch.linalg.solve needs less work, and loses fewer digits",
            frozenset(["aten::inverse", "aten::linalg_inv", "aten::linalg_inv_ex"]), (0.25, 0.8), "tolerance",
            inverse_times_matrix),
    Pattern("computes a whole product for its diagonal", "the diagonal takes n² operations and the product n³",
            frozenset(["aten::mm", "aten::matmul"]), (0.12, 0.13), "tolerance", trace_of_product),
    Pattern("multiplies with a diagonal matrix", "scaling the columns takes n² operations and the product n³",
            frozenset(["aten::diag", "aten::mm", "aten::matmul"]), (0.01, 0.1), "tolerance", diagonal_matrix_times),
    Pattern("takes a softmax before argmax", "softmax keeps the order, so that argmax of its input is the same",
            frozenset(["aten::softmax", "aten::_softmax"]), (0.39, 0.39), "tolerance", softmax_before_argmax),
    Pattern("makes all differences to sum their squares", "torch.cdist keeps none of them",
            frozenset(["aten::sub", "aten::pow", "aten::mul", "aten::sum", "aten::norm", "aten::linalg_vector_norm"]), (0.01, 0.1), "tolerance",
            pairwise_differences),
    Pattern("multiplies all pairs of rows element by element to add the products up", "`a @ b.mT` gives all sums in one matrix product, and of rows that "
            "`torch.nn.functional.normalize` scaled to length 1 all cosines",
            frozenset(["aten::cosine_similarity", "aten::mul", "aten::div", "aten::sum", "aten::linalg_vector_norm"]), (0.002, 0.12), "tolerance",
            pairwise_products),
)  # fmt: skip
"""Whether a rewrite keeps every digit: sums in another order, ties in another one."""
