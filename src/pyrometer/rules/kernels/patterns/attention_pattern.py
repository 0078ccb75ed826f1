"""Attention written out: a product with a transposed matrix, softmax, and a product with the values, in one function."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name

PRODUCTS = frozenset(["matmul", "bmm", "baddbmm", "einsum"])
TRANSPOSES = frozenset(["transpose", "permute", "swapaxes", "swapdims", "t", "adjoint", "movedim"])
PASSING = frozenset(
    ["masked_fill", "masked_fill_", "where", "clamp", "float", "to", "type", "type_as", "dropout", "contiguous", "add", "mul",
     "div", "half", "bfloat16", "attn_dropout", "drop", "attn_drop"]
)  # fmt: skip
"""What may stand between the parts without changing what it is."""

DELIBERATE = re.compile(r"(?i)eager|naive|reference|manual|decompos|explicit|_math")
"""Names of functions that are written out on purpose, beside a fused one."""

FUSED = re.compile(
    r"scaled_dot_product_attention|flash_attn|flex_attention|memory_efficient_attention|xformers"
)
DEEPEST = 8
SCORE_OPERANDS = 2


class Attention(NamedTuple):
    """The parts of one attention that is written out."""

    softmax: ast.Call
    query: str
    key: str
    value: str
    product: ast.expr
    scores: ast.expr
    """The product of queries and keys."""


def written_out(module: Module) -> Iterator[Attention]:
    """Every attention that is written out and whose weights nothing else reads."""
    if FUSED.search(module.text):
        return
    calls = [*module.calls("torch.softmax", "torch.nn.functional.softmax"), *module.method_calls("softmax")]
    found = [
        attention for call in dict.fromkeys(calls) if (attention := _attention(module, call)) is not None
    ]
    taken = Counter(attention.scores for attention in found)
    yield from (attention for attention in found if taken[attention.scores] == 1)


def _attention(module: Module, call: ast.Call) -> Attention | None:
    function = module.function_of(call)
    if function is None or DELIBERATE.search(function.name) or not _is_along_keys(module, call):
        return None
    scores = _softmax_input(module, call)
    product = None if scores is None else _product_behind(module, scores, 0)
    if product is None:
        return None
    operands = _operands(product)
    key = None if len(operands) < SCORE_OPERANDS else _untransposed(module, operands[1])
    if key is None and not _is_einsum(product):
        return None
    second = _product_ahead(module, call, 0)
    if second is None:
        return None
    values = _operands(second)
    if len(values) < SCORE_OPERANDS or len(operands) < SCORE_OPERANDS or _is_of_channels(module, operands[0]):
        return None
    return Attention(
        call,
        module.source(operands[0]),
        key or module.source(operands[1]),
        module.source(values[1]),
        second,
        product,
    )


def _is_of_channels(module: Module, query: ast.expr) -> bool:
    """Whether channels attend to channels, over all positions: few weights, and rows longer than fused kernels take."""
    name = next((part for part in ast.walk(query) if isinstance(part, ast.Name)), None)
    given = [] if name is None else module.assignments(name.id, name)
    calls = [call for value in given for call in ast.walk(value) if isinstance(call, ast.Call)]
    patterns = [module.literal(argument) for call in calls for argument in call.args]
    laid_out = any(isinstance(text, str) and text.replace(" ", "").endswith("c(hw)") for text in patterns)
    swapped = any(
        last_name(call.func) in {"transpose", "swapaxes"}
        and {module.literal(argument) for argument in call.args} == {-1, -2}
        for call in calls
    )
    return laid_out or swapped


def _is_along_keys(module: Module, call: ast.Call) -> bool:
    """Whether a softmax is along the last dimension, as far as its arguments tell."""
    is_method = module.name_of(call.func) is None
    given = call.args[0 if is_method else 1 :][:1]
    dim = module.keyword(call, "dim") or (given[0] if given else None)
    number = module.literal(dim) if dim is not None else None
    return not isinstance(number, int) or number in {-1, 2, 3}


def _softmax_input(module: Module, call: ast.Call) -> ast.expr | None:
    is_function = module.name_of(call.func) is not None
    if not is_function and isinstance(call.func, ast.Attribute) and not _is_self(call.func.value):
        return call.func.value
    return call.args[0] if call.args else module.keyword(call, "input")


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _product_behind(module: Module, node: ast.expr, depth: int) -> ast.expr | None:
    """The product that an expression comes from, through scaling, masking and names."""
    if depth > DEEPEST:
        return None
    if _is_product(node):
        return node
    if isinstance(node, ast.BinOp):
        sides: list[ast.expr] = [node.left, node.right]
    elif isinstance(node, ast.Call) and last_name(node.func) in PASSING:
        sides = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        sides += node.args[:2]
    elif isinstance(node, ast.Name):
        sides = [
            assignment
            for assignment in module.assignments(node.id, node)
            if assignment.lineno <= node.lineno and assignment is not node
        ]
    else:
        return None
    products = (_product_behind(module, side, depth + 1) for side in sides)
    return next((product for product in products if product is not None), None)


def _is_product(node: ast.AST | None) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and last_name(node.func) in PRODUCTS


def _is_einsum(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "einsum"


def _operands(product: ast.expr) -> list[ast.expr]:
    if isinstance(product, ast.BinOp):
        return [product.left, product.right]
    if not isinstance(product, ast.Call):
        return []
    name, arguments = last_name(product.func), list(product.args)
    if name == "einsum":
        return arguments[1:]
    if name == "baddbmm":
        return arguments[-2:]
    is_method = isinstance(product.func, ast.Attribute) and len(arguments) == 1
    if is_method and isinstance(product.func, ast.Attribute):
        return [product.func.value, *arguments]
    return arguments


def _untransposed(module: Module, node: ast.expr) -> str | None:
    """The text of a matrix without its transpose; None where it is not transposed."""
    if isinstance(node, ast.Attribute) and node.attr in {"T", "mT", "mH"}:
        return module.source(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TRANSPOSES:
        if module.name_of(node.func) is None:
            return module.source(node.func.value)
        return module.source(node.args[0]) if node.args else None
    if isinstance(node, ast.Name):
        # Names of keys that are laid out for the product where they are made; only the last dimensions tell.
        nodes = [
            assignment for assignment in module.assignments(node.id, node) if assignment.lineno <= node.lineno
        ]
        last = nodes[-1] if nodes else None
        if isinstance(last, ast.Call) and last_name(last.func) in {"transpose", "permute", "t"}:
            if re.search(r"^(k|key)", node.id) and _swaps_last(module, last):
                return f"{node.id}.transpose(-2, -1)"
            return None
    return None


def _swaps_last(module: Module, call: ast.Call) -> bool:
    """Whether a transpose is of the last two of three or four dimensions."""
    numbers = [module.literal(arg) for arg in call.args]
    numbers = [number for number in numbers if isinstance(number, int)]
    if last_name(call.func) == "t":
        return True
    if last_name(call.func) == "transpose":
        return set(numbers) in ({-2, -1}, {2, 3})
    return numbers in ([0, 2, 3, 1], [0, 2, 1])


def _product_ahead(module: Module, node: ast.expr, depth: int) -> ast.expr | None:
    """The product that takes an expression as its first operand, if that is all that becomes of it."""
    parent = module.parent(node)
    if depth > DEEPEST or parent is None:
        return None
    if isinstance(parent, ast.expr) and _is_product(parent):
        operands = _operands(parent)
        return parent if operands and operands[0] is node and not _keeps_weights(module, parent) else None
    taker = module.parent(parent) if isinstance(parent, ast.Attribute) else parent
    if isinstance(taker, ast.Call):
        return _taken(module, taker, node, depth)
    if (
        isinstance(parent, ast.Assign)
        and len(parent.targets) == 1
        and isinstance(parent.targets[0], ast.Name)
    ):
        return _product_of_uses(module, parent.targets[0], parent, depth)
    return None


def _keeps_weights(module: Module, product: ast.expr) -> bool:
    """Whether an einsum of the weights gives weights again, as mixing heads does: `b h i j, h g -> b g i j`."""
    spec = (
        module.literal(product.args[0])
        if isinstance(product, ast.Call) and _is_einsum(product) and product.args
        else None
    )
    if not isinstance(spec, str) or "->" not in spec:
        return False
    taken, _, given = spec.replace(" ", "").partition("->")
    return taken.partition(",")[0][-2:] == given[-2:]


def _taken(module: Module, call: ast.Call, node: ast.expr, depth: int) -> ast.expr | None:
    """The product that a call is, or that its result goes into, where the expression is what it is called on or with."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.value is node
    if is_method and _is_product(call):
        return call
    is_first = bool(call.args) and call.args[0] is node
    passes = last_name(call.func) in PASSING and (is_method or is_first)
    return _product_ahead(module, call, depth + 1) if passes else None


def _product_of_uses(module: Module, name: ast.Name, after: ast.Assign, depth: int) -> ast.expr | None:
    """The product ahead of the only use of a name before it is assigned anew."""
    begin, function = after.end_lineno or after.lineno, module.function_of(name)
    again = [
        statement.end_lineno or statement.lineno
        for statement in module.nodes(ast.Assign)
        if statement.lineno > begin
        and module.function_of(statement) is function
        and any(isinstance(target, ast.Name) and target.id == name.id for target in statement.targets)
    ]
    end = min(again, default=len(module.lines))
    uses = [
        use
        for use in module.uses(name.id, name)
        if begin < use.lineno <= end and module.function_of(use) is function
    ]
    return _product_ahead(module, uses[0], depth + 1) if len(uses) == 1 else None
