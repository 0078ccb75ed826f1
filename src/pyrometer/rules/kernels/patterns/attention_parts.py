"""Parts of an attention that is written out: factors of a product, masks, transposes, and what statements make of names."""

from __future__ import annotations

import ast

from pyrometer.rules.kernels.patterns.better import bracketed
from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name


class UnclearError(Exception):
    """The text holds something that the fused operator has no argument for, or that is not understood."""


def is_dropout(module: Module, layer: ast.expr) -> bool:
    """Whether `self.drop` is a dropout, and nothing else, in its class."""
    around = module.class_of(layer)
    if not isinstance(layer, ast.Attribute) or around is None or not isinstance(layer.value, ast.Name):
        return False
    given = [
        node.value
        for node in ast.walk(around)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == layer.attr for target in node.targets)
    ]
    return bool(given) and all(
        isinstance(value, ast.Call) and module.name_of(value.func) == "torch.nn.Dropout" for value in given
    )


def assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement makes of a name: the value that it assigns, or what it does in place."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return statement.value if isinstance(target, ast.Name) and target.id == name else None
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.value
    if isinstance(statement, ast.AugAssign):
        return ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value if last_name(statement.value.func) == "masked_fill_" else None
    return None


def is_plain_product(node: ast.expr) -> bool:
    """Whether it is a product of two tensors, with nothing else."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and last_name(node.func) in {"matmul", "bmm", "einsum"}


def operands(product: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Both factors of a product whose indices are those of an attention."""
    if isinstance(product, ast.BinOp):
        return product.left, product.right
    if not isinstance(product, ast.Call) or product.keywords:
        raise UnclearError
    given = list(product.args)
    if last_name(product.func) == "einsum":
        if len(given) != 3 or not _is_attention_sum(given[0]):
            raise UnclearError
        return given[1], given[2]
    if len(given) == 1 and isinstance(product.func, ast.Attribute):
        return product.func.value, given[0]
    if len(given) != 2:
        raise UnclearError
    return given[0], given[1]


def _is_attention_sum(node: ast.expr) -> bool:
    """`bhqd,bhkd->bhqk`, or `bhqk,bhkd->bhqd`."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    inputs, arrow, output = node.value.replace(" ", "").partition("->")
    left, _, right = inputs.partition(",")
    if (
        not arrow
        or not left.isalpha()
        or not right.isalpha()
        or len({len(left), len(right), len(output)}) != 1
    ):
        return False
    batch = left[:-2]
    alike = batch == right[:-2] == output[:-2] and len(set(left + right)) == len(batch) + 3
    scores = left[-1] == right[-1] and output[-2:] == left[-2] + right[-2]
    mixed = left[-1] == right[-2] and output[-2:] == left[-2] + right[-1]
    return alike and (scores or mixed)


def swaps_last(module: Module, call: ast.Call) -> bool:
    """Whether a transpose is of the last two dimensions, whatever their number; or of three, as `bmm` has them."""
    numbers = [module.literal(argument) for argument in call.args]
    if call.keywords or module.name_of(call.func) is not None:
        return False
    return last_name(call.func) in {"transpose", "swapaxes", "swapdims"} and set(map(str, numbers)) == {
        "-1",
        "-2",
    }


def negated(module: Module, mask: ast.expr) -> str:
    """The opposite of a boolean mask."""
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return module.source(mask.operand)
    if isinstance(mask, ast.Compare) and len(mask.ops) == 1 and isinstance(mask.ops[0], (ast.Eq, ast.NotEq)):
        sign = "!=" if isinstance(mask.ops[0], ast.Eq) else "=="
        return f"{module.source(mask.left)} {sign} {module.source(mask.comparators[0])}"
    return f"~{bracketed(module, mask)}"


def is_infinite(module: Module, fill: ast.expr) -> bool:
    """Minus infinity, in any of its spellings."""
    text = ast.unparse(fill).replace('"', "'").replace(" ", "").lower()
    return text in {"float('-inf')", "-float('inf')", "float('-infinity')"} or (
        isinstance(fill, ast.UnaryOp)
        and isinstance(fill.op, ast.USub)
        and module.name_of(fill.operand) in {"torch.inf", "math.inf", "numpy.inf"}
    )
