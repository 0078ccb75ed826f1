"""Tensors that Python asks whether they are true, as source text shows them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyrometer.rules.host.patterns.reads import Read, is_tensor, read_of
from pyrometer.rules.rule import Module
from pyrometer.text import one_line

ASKING = frozenset(["isinstance", "issubclass", "hasattr", "callable", "len"])
HOST_ATTRIBUTES = frozenset(["training", "is_cuda", "requires_grad", "is_sparse", "ndim", "config"])
FLAG = re.compile(r"^(output|return|use)_")
"""Parameters that say what to do; where one is annotated as a tensor, the annotation is wrong."""


def conditions(module: Module) -> Iterator[Read]:
    """Tensors that Python asks whether they are true: `if t`, `while t`, `assert t`, `t and u`, `bool(t)`."""
    for tested in _tested(module):
        yield from (read for read in _leaves(module, tested) if not _is_flag(module, read.subject))
    for call in module.calls("bool", "any", "all"):
        if len(call.args) == 1 and not isinstance(call.args[0], ast.GeneratorExp | ast.Starred):
            yield read_of(module, call, call.args[0])
    for call in module.calls("max", "min"):
        if len(call.args) > 1 and not call.keywords and module.hot(call) is not None:
            both = [arg for arg in call.args if is_tensor(module, arg)]
            if len(both) > 1:
                yield read_of(module, call, both[0])
    for call in module.calls("torch.equal", "torch.allclose"):
        yield Read(call, call.args[0] if call.args else None, one_line(module.source(call)))


def _is_flag(module: Module, subject: ast.expr | None) -> bool:
    if not isinstance(subject, ast.Name) or FLAG.search(subject.id) is None:
        return False
    return not module.assignments(subject.id, subject)


def _tested(module: Module) -> Iterator[ast.expr]:
    """Expressions whose truth decides, boolean operators not taken apart."""
    yield from (node.test for node in module.nodes(ast.If))
    yield from (node.test for node in module.nodes(ast.While))
    yield from (node.test for node in module.nodes(ast.IfExp))
    yield from (node.test for node in module.nodes(ast.Assert))
    for clause in module.nodes(ast.comprehension):
        yield from clause.ifs
    inverted = [node for node in module.nodes(ast.UnaryOp) if isinstance(node.op, ast.Not)]
    for node in [*module.nodes(ast.BoolOp), *inverted]:
        above = module.parent(node)
        if not isinstance(above, ast.BoolOp) and not _is_test(above, node):
            yield node


def _is_test(above: ast.AST | None, node: ast.expr) -> bool:
    """Whether the node above asks for the truth of this one."""
    if isinstance(above, ast.comprehension):
        return node in above.ifs
    if isinstance(above, ast.UnaryOp):
        return isinstance(above.op, ast.Not)
    return isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert) and above.test is node


def _leaves(module: Module, tested: ast.expr) -> Iterator[Read]:
    """What within a test is asked for its truth."""
    above = module.parent(tested)
    if isinstance(tested, ast.BoolOp):
        last = tested.values if _is_test(above, tested) else tested.values[:-1]
        for value in last:
            yield from _leaves(module, value)
    elif isinstance(tested, ast.UnaryOp) and isinstance(tested.op, ast.Not):
        yield from _leaves(module, tested.operand)
    elif isinstance(tested, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in tested.ops):
        if not _is_plain(tested.left):  # a text is a key, and what has keys is no tensor
            yield read_of(module, tested, tested.comparators[-1])
    elif not _is_of_host(tested) and not (
        isinstance(tested, ast.Call) and module.name_of(tested.func) in {"bool", "any", "all"}
    ):
        yield read_of(module, tested, tested)


def _is_of_host(tested: ast.expr) -> bool:
    """Whether the form alone says that no tensor is asked: `x is None`, `mode == "train"`, `isinstance(x, Tensor)`.

    Asked first, as it costs nothing beside finding out what a value is.
    """
    if isinstance(tested, ast.Compare):
        sides = [tested.left, *tested.comparators]
        return any(isinstance(op, ast.Is | ast.IsNot) for op in tested.ops) or any(map(_is_plain, sides))
    if isinstance(tested, ast.Call):
        return isinstance(tested.func, ast.Name) and tested.func.id in ASKING
    return isinstance(tested, ast.Constant) or (
        isinstance(tested, ast.Attribute) and tested.attr in HOST_ATTRIBUTES
    )


def _is_plain(side: ast.expr) -> bool:
    """Whether what one side of a comparison is leaves no tensor as its outcome."""
    if isinstance(side, ast.Constant):
        return side.value is None or isinstance(side.value, str)
    return isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "type"
