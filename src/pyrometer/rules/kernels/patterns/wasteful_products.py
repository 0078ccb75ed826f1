"""Matrix products of which the most is computed for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.kernels.patterns.better import Better, bracketed
from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name
from pyrometer.source.rewriting import spelled


def one_hot_times_table(module: Module) -> Iterator[Better]:
    """`one_hot(ids, n).float() @ table`."""
    if "one_hot" not in module.text:
        return
    for product, left, right in _products(module):
        inner = _given_once(module, left)
        while isinstance(inner, ast.Call) and last_name(inner.func) in {
            "float",
            "to",
            "type",
            "type_as",
            "half",
            "double",
        }:
            if not isinstance(inner.func, ast.Attribute):
                break
            inner = inner.func.value
        if (
            isinstance(inner, ast.Call)
            and module.name_of(inner.func) == "torch.nn.functional.one_hot"
            and inner.args
        ):
            apart = left is not _given_once(module, left) or _is_batched(product)
            name = None if apart else spelled(module, "torch.nn.functional.embedding")
            ids, table = module.source(inner.args[0]), module.source(right)
            text = "" if name is None else f"{name}({ids}, {table})"
            yield Better(product, text)


def _given_once(module: Module, node: ast.expr) -> ast.expr:
    """What a name stands for, where its function assigns it once; else the expression itself."""
    given = module.assignments(node.id, node) if isinstance(node, ast.Name) else ()
    return given[0] if len(given) == 1 else node


def inverse_times_matrix(module: Module) -> Iterator[Better]:
    """`torch.inverse(a) @ b`."""
    if "inv" not in module.text:
        return
    for product, left, right in _products(module):
        if isinstance(left, ast.Call):
            is_function = module.name_of(left.func) in {"torch.inverse", "torch.linalg.inv"}
            is_method = (
                last_name(left.func) == "inverse" and not left.args and module.name_of(left.func) is None
            )
            a = left.args[0] if is_function and left.args else None
            if (
                is_method
                and isinstance(left.func, ast.Attribute)
                and module.value_of(left.func.value).is_tensor
            ):
                a = left.func.value
            if a is not None:
                name = spelled(module, "torch.linalg.solve")
                text = f"{name}({module.source(a)}, {module.source(right)})"
                yield Better(product, "" if name is None else text)


def trace_of_product(module: Module) -> Iterator[Better]:
    """`torch.trace(a @ b)`, and the diagonal of a product."""
    for call in module.calls("torch.trace", "torch.diag", "torch.diagonal"):
        if len(call.args) != 1 or call.keywords:
            continue
        operands = _operands(module, call.args[0])
        if operands is None:
            continue
        a, b = (bracketed(module, operand) for operand in operands)
        # The diagonal of what may be a batch of products, or of a vector, is something else.
        is_trace = module.name_of(call.func) == "torch.trace"
        yield Better(call, f"({a} * {b}.T).sum()" if is_trace else "")


def diagonal_matrix_times(module: Module) -> Iterator[Better]:
    """`a @ torch.diag(s) @ b`: between two matrices `s` can only be a vector."""
    if "diag" not in module.text:
        return
    for product, left, _right in _products(module):
        operands = _operands(module, left)
        middle = operands[1] if operands is not None else None
        if (
            isinstance(product, ast.BinOp)
            and operands is not None
            and isinstance(middle, ast.Call)
            and module.name_of(middle.func) in {"torch.diag", "torch.diag_embed"}
            and len(middle.args) == 1
            and not middle.keywords
        ):
            s = bracketed(module, middle.args[0])
            row = f"{s}.unsqueeze(-2)" if module.name_of(middle.func) == "torch.diag_embed" else s
            yield Better(left, f"({bracketed(module, operands[0])} * {row})")


def _is_batched(product: ast.expr) -> bool:
    return isinstance(product, ast.Call) and last_name(product.func) == "bmm"


def _products(module: Module) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Every matrix product with its operands."""
    for node in module.nodes(ast.BinOp, ast.Call):
        operands = _operands(module, node)
        if operands is not None:
            yield node, *operands


def _operands(module: Module, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.Call) and not node.keywords and last_name(node.func) in {"matmul", "mm", "bmm"}:
        if module.name_of(node.func) in {"torch.matmul", "torch.mm", "torch.bmm"} and len(node.args) == 2:
            return node.args[0], node.args[1]
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in {"matmul", "mm", "bmm"}
            and module.name_of(node.func) is None
            and len(node.args) == 1
        ):
            return node.func.value, node.args[0]
    return None
