"""What an expression is, from what its parts are."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyrometer.source.calling import as_iterable, call_value
from pyrometer.source.frame import Frame
from pyrometer.source.knowledge import TEXT_NAME
from pyrometer.source.module_calls import OUTPUT_FIELDS, module_attribute
from pyrometer.source.tensor_methods import tensor_attribute
from pyrometer.source.torch_names import HOST_ATTRIBUTES
from pyrometer.source.value import (
    ARRAY,
    BATCH,
    CONTAINER,
    EMPTY,
    HOST,
    MODULE,
    NONE,
    UNKNOWN,
    Kind,
    Value,
    element_of,
    holding,
    join,
    join_all,
    yielding,
)
from pyrometer.source.words import words

DEEPEST = 90
"""Expressions and blocks within each other; deeper ones stay unknown, so that no program exhausts the stack."""

ARITHMETIC_KINDS = frozenset([Kind.TENSOR, Kind.HOST, Kind.ARRAY, Kind.UNKNOWN])
SEQUENCE_KINDS = frozenset([Kind.TENSORS, Kind.CONTAINER])
TENSOR_FLAGS = words("requires_grad grad_fn is_cuda is_leaf")


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression at this point, noted for rules to ask."""
    action = ACTIONS.get(node.__class__)
    if action is None or frame.flow.depth > DEEPEST or frame.env is None:
        return UNKNOWN
    frame.flow.depth += 1
    value: Value = action(frame, node)
    frame.flow.depth -= 1
    if not frame.quiet:
        frame.flow.record(node, value)
    return value


def constant(_frame: Frame, node: ast.Constant) -> Value:
    """A number or text."""
    return NONE if node.value is None else HOST


def text(frame: Frame, node: ast.JoinedStr) -> Value:
    """An f-string."""
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            evaluate(frame, part.value)
    return HOST


def name(frame: Frame, node: ast.Name) -> Value:
    """A name: local, of an enclosing function, or of the file."""
    value = frame.env.get(node.id) if frame.env is not None else None
    return value if value is not None else frame.flow.outside(frame, node)


def attribute(frame: Frame, node: ast.Attribute) -> Value:
    """`x.attr`."""
    base = evaluate(frame, node.value)
    kind, attr = base.kind, node.attr
    if isinstance(base.of, ast.ClassDef):
        return frame.flow.instances.attribute(base.of, attr)
    if kind is Kind.TENSOR:
        return tensor_attribute(base, attr)
    if kind is Kind.MODULE:
        return module_attribute(attr)
    if kind is Kind.TENSORS:
        return Value(Kind.TENSOR, base.graph, base.device) if attr in OUTPUT_FIELDS else UNKNOWN
    if kind is Kind.ARRAY:
        return array_attribute(attr)
    return HOST if kind is Kind.HOST or attr in TENSOR_FLAGS or is_torch_constant(frame, node) else UNKNOWN


def array_attribute(attr: str) -> Value:
    """An attribute of an array of numpy."""
    if attr in {"T", "real", "imag", "flat"}:
        return ARRAY
    return HOST if attr in HOST_ATTRIBUTES or attr == "size" else UNKNOWN


def is_torch_constant(frame: Frame, node: ast.Attribute) -> bool:
    """Whether it is `torch.float16` or its like: a lower-case name of torch that is not called."""
    if not isinstance(node.value, ast.Name):
        return False
    dotted = frame.flow.module.name_of(node)
    return (
        dotted is not None and dotted.startswith("torch.") and dotted[6:].isalnum() and dotted[-1].isdigit()
    )


def subscript(frame: Frame, node: ast.Subscript) -> Value:
    """`x[i]`."""
    base = evaluate(frame, node.value)
    evaluate(frame, node.slice)
    kind = base.kind
    if kind is Kind.TENSOR:
        return frame.tensor(base)
    if base.items is not None:
        return part_of(frame, node, base)
    if kind is Kind.TENSORS:
        return tensor_in(node, base)
    if kind is Kind.MODULE:
        return UNKNOWN if isinstance(base.of, ast.ClassDef) else MODULE
    if kind is Kind.CONTAINER:
        return base if isinstance(node.slice, ast.Slice) else base.element or UNKNOWN
    return base if kind in {Kind.HOST, Kind.ARRAY} else UNKNOWN


def part_of(frame: Frame, node: ast.Subscript, base: Value) -> Value:
    """A part of a container whose parts are known."""
    assert base.items is not None
    if isinstance(node.slice, ast.Slice):
        return Value(base.kind, base.graph, base.device)
    number = frame.flow.module.literal(node.slice)
    if isinstance(number, int) and -len(base.items) <= number < len(base.items):
        return base.items[number]
    return join_all(base.items)


def tensor_in(node: ast.Subscript, base: Value) -> Value:
    """A tensor of several; what a batch holds under the name of a text is none."""
    if isinstance(node.slice, ast.Slice):
        return Value(Kind.TENSORS, base.graph, base.device, base.of)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if base.of == BATCH and isinstance(key, str) and TEXT_NAME.search(key):
        return UNKNOWN
    return base.element or Value(Kind.TENSOR, base.graph, base.device)


def operands(frame: Frame, node: ast.BinOp) -> Value:
    """Arithmetic; long sums lean to the left and are taken in a loop."""
    chain: list[ast.BinOp] = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    value = evaluate(frame, chain[-1].left)
    for part in reversed(chain):
        if isinstance(part.op, ast.Mod) and is_text(part.left):
            evaluate(frame, part.right)
            value = HOST
        else:
            value = binary(frame, value, evaluate(frame, part.right), part.op)
        if not frame.quiet:
            frame.flow.record(part, value)
    return value


def is_text(node: ast.expr) -> bool:
    """Whether an expression is text as it stands, so that `%` fills it in."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def binary(frame: Frame, left: Value, right: Value, operator: ast.operator) -> Value:
    """`left operator right`."""
    kinds = {left.kind, right.kind}
    if Kind.TENSOR in kinds:
        if not kinds <= ARITHMETIC_KINDS:
            return UNKNOWN
        if isinstance(operator, ast.Add) and (left.graph or right.graph):
            # What is added to the result of a module is its like: `x + self.layer(x)`.
            frame.claim(left if left.kind is Kind.UNKNOWN else right)
        return frame.tensor(left, right)
    if kinds <= SEQUENCE_KINDS and isinstance(operator, ast.Add):
        graph = left.graph or right.graph
        return Value(Kind.TENSORS, graph) if Kind.CONTAINER not in kinds else CONTAINER
    if kinds <= {Kind.ARRAY, Kind.HOST}:
        return ARRAY if Kind.ARRAY in kinds else HOST
    if Kind.HOST in kinds and isinstance(operator, ast.Mult) and kinds & SEQUENCE_KINDS:
        return Value(left.kind if left.kind in SEQUENCE_KINDS else right.kind, left.graph or right.graph)
    return UNKNOWN


def compare(frame: Frame, node: ast.Compare) -> Value:
    """A comparison: of tensors, element by element."""
    values = [evaluate(frame, node.left), *(evaluate(frame, part) for part in node.comparators)]
    if any(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops):
        return HOST
    kinds = {value.kind for value in values}
    if Kind.TENSOR in kinds:
        devices = {value.device for value in values if value.is_tensor}
        return Value(Kind.TENSOR, device=devices.pop() if len(devices) == 1 else None)
    if Kind.ARRAY in kinds:
        return ARRAY
    return HOST if kinds == {Kind.HOST} else UNKNOWN


def unary(frame: Frame, node: ast.UnaryOp) -> Value:
    """`-x`, `~x`, `not x`."""
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return HOST
    if value.is_tensor:
        return frame.tensor(value)
    return value if value.kind in {Kind.HOST, Kind.ARRAY} else UNKNOWN


def either(frame: Frame, node: ast.BoolOp) -> Value:
    """`a and b`, `a or b`: one of them."""
    return join_all([evaluate(frame, part) for part in node.values])


def conditional(frame: Frame, node: ast.IfExp) -> Value:
    """`a if test else b`."""
    evaluate(frame, node.test)
    return join(evaluate(frame, node.body), evaluate(frame, node.orelse))


def walrus(frame: Frame, node: ast.NamedExpr) -> Value:
    """`(name := value)`."""
    value = evaluate(frame, node.value)
    frame.bind(node.target.id, value, node.target)
    return value


def display(frame: Frame, node: ast.List | ast.Tuple | ast.Set) -> Value:
    """A list, tuple or set that is written out."""
    parts = [evaluate(frame, part) for part in node.elts]
    return holding(parts, exact=not any(isinstance(part, ast.Starred) for part in node.elts))


def mapping(frame: Frame, node: ast.Dict) -> Value:
    """A dict that is written out."""
    for key in node.keys:
        if key is not None:
            evaluate(frame, key)
    values = [evaluate(frame, value) for value in node.values]
    return holding(values, exact=False) if values else EMPTY


def starred(frame: Frame, node: ast.Starred) -> Value:
    """`*parts`."""
    value = evaluate(frame, node.value)
    return value if value.kind is Kind.TENSORS else UNKNOWN


def comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    """A loop in brackets, with names of its own."""
    with frame.inner_names():
        for part in node.generators:
            held = as_iterable(frame, part.iter, evaluate(frame, part.iter))
            assign(frame, part.target, element_of(held))
            for test in part.ifs:
                evaluate(frame, test)
        if isinstance(node, ast.DictComp):
            evaluate(frame, node.key)
            element = evaluate(frame, node.value)
        else:
            element = evaluate(frame, node.elt)
    return CONTAINER if element.kind is Kind.UNKNOWN else yielding(element)


def function(frame: Frame, node: ast.Lambda) -> Value:
    """A lambda: its body is looked at with unknown arguments."""
    for part in (*node.args.defaults, *node.args.kw_defaults):
        if part is not None:
            evaluate(frame, part)
    with frame.inner_names():
        for argument in all_arguments(node.args):
            frame.bind(argument.arg, UNKNOWN, argument)
        evaluate(frame, node.body)
    return UNKNOWN


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Every argument of a signature."""
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return found + [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]


def parts(frame: Frame, node: ast.Await | ast.Yield | ast.YieldFrom | ast.Slice) -> Value:
    """Expressions whose own value is not known: their parts are looked at."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr):
            evaluate(frame, part)
    return UNKNOWN


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Give a target a value; tuples part by part."""
    if isinstance(target, ast.Name):
        frame.bind(target.id, value, target)
        if not frame.quiet:
            frame.flow.record(target, value if frame.env is None else frame.env[target.id])
    elif isinstance(target, ast.Tuple | ast.List):
        unpack(frame, target.elts, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value if value.kind is Kind.TENSORS else CONTAINER)
    else:
        evaluate(frame, target)
        if isinstance(target, ast.Subscript):
            frame.fill(target.value, value)


def unpack(frame: Frame, targets: list[ast.expr], value: Value) -> None:
    """`a, b = value`."""
    exact = value.items is not None and not any(isinstance(target, ast.Starred) for target in targets)
    for number, target in enumerate(targets):
        if exact and value.items is not None and len(value.items) == len(targets):
            part = value.items[number]
        elif value.of == BATCH:
            part = part_of_batch(target, value)
        else:
            part = element_of(value)
        assign(frame, target, part)


def part_of_batch(target: ast.expr, batch: Value) -> Value:
    """A part of a batch: a tensor, unless its name says that it is a text."""
    if isinstance(target, ast.Tuple | ast.List | ast.Starred):
        return batch
    if isinstance(target, ast.Name) and TEXT_NAME.search(target.id):
        return UNKNOWN
    return Value(Kind.TENSOR, batch.graph, batch.device)


ACTIONS: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Constant: constant,
    ast.JoinedStr: text,
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.BinOp: operands,
    ast.Compare: compare,
    ast.UnaryOp: unary,
    ast.BoolOp: either,
    ast.IfExp: conditional,
    ast.NamedExpr: walrus,
    ast.List: display,
    ast.Tuple: display,
    ast.Set: display,
    ast.Dict: mapping,
    ast.Starred: starred,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.DictComp: comprehension,
    ast.Lambda: function,
    ast.Await: parts,
    ast.Yield: parts,
    ast.YieldFrom: parts,
    ast.Slice: parts,
    ast.Call: lambda frame, node: call_value(frame, node, evaluate),
}
