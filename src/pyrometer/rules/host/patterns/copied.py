"""What is done on the host with a copy of a tensor: arithmetic that the device could do, or something that only works there."""

from __future__ import annotations

import ast

from pyrometer.rules.host.patterns.avoidable import (
    NUMPY_REDUCING,
    ON_HOST_ANYWAY,
    REDUCING,
    is_required,
    uses_of,
)
from pyrometer.rules.host.patterns.reads import Read
from pyrometer.rules.rule import Module
from pyrometer.source.words import words

FURTHEST = 3
"""Names that a value is followed through."""

LOOKING = words("len str print")
MAKING_ARRAYS = words("numpy.array numpy.asarray numpy.concatenate numpy.stack numpy.vstack numpy.hstack")
FOR_HOST = words("torch.save torch.from_numpy torch.utils.data.TensorDataset")
"""Functions of torch that are given tensors of the host as a rule."""

COLLECTING = frozenset(
    [
        "append",
        "extend",
        "add",
        "update",
        "put",
        "put_nowait",
        "send",
        "write",
        "writerow",
        "save",
        "insert",
        "appendleft",
        "setdefault",
    ]
)
"""Methods that hand on what they are given."""


def is_calculated_with(module: Module, read: Read) -> bool:
    """Whether a copy is calculated with, or handed to torch again, and nothing needs it on the host."""
    if is_required(module, read) or any(_is_handed_on(module, use) for use in uses_of(module, read.node)):
        return False
    return _is_calculated(module, read.node, 0)


def _is_calculated(module: Module, node: ast.expr, depth: int) -> bool:
    return _is_reduced(module, node) or any(_goes_on(module, use, depth) for use in uses_of(module, node))


def _is_reduced(module: Module, node: ast.expr) -> bool:
    """Whether methods that follow reduce it, or send it back: `x.cpu().numpy().mean()`, `x.cpu().cuda()`."""
    child, above = node, module.parent(node)
    while isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is child):
        if isinstance(above, ast.Attribute) and (above.attr in REDUCING or above.attr == "cuda"):
            return True
        child, above = above, module.parent(above)
    return False


def _goes_on(module: Module, use: ast.expr, depth: int) -> bool:
    above = module.parent(use)
    if isinstance(above, ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign):
        return True
    if isinstance(above, ast.Attribute | ast.Subscript) and depth < FURTHEST:
        return above.value is use and _is_calculated(module, above, depth + 1)
    if not isinstance(above, ast.Call) or use is above.func:
        return False
    name = module.name_of(above.func) or ""
    if name in MAKING_ARRAYS:
        return depth < FURTHEST and _is_calculated(module, above, depth + 1)
    if name in NUMPY_REDUCING or name in ON_HOST_ANYWAY - LOOKING:
        return True
    return name.startswith("torch.") and name not in FOR_HOST


def is_result(module: Module, read: Read) -> bool:
    """Whether the copy is what the code is for: it is handed on, alone or with others, as it is or as an array."""
    child: ast.AST = read.node
    for above in module.ancestors(read.node):
        if isinstance(above, ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(above, ast.Call) and child in above.args:
            return isinstance(above.func, ast.Attribute) and above.func.attr in COLLECTING
        if isinstance(above, ast.Assign | ast.AnnAssign):
            return _is_stored(module, above)
        if not isinstance(
            above,
            ast.Tuple
            | ast.List
            | ast.Dict
            | ast.DictComp
            | ast.ListComp
            | ast.Attribute
            | ast.Call
            | ast.Subscript,
        ):
            return False
        child = above
    return False


def _is_stored(module: Module, assignment: ast.Assign | ast.AnnAssign) -> bool:
    """Whether what is assigned goes into a container, or to a name that is only handed on."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    if any(isinstance(target, ast.Subscript) for target in targets):
        return True
    names = [target for target in targets if isinstance(target, ast.Name)]
    uses = [use for name in names for use in module.uses(name.id, name) if use.lineno >= assignment.lineno]
    return bool(uses) and all(_is_handed_on(module, use) for use in uses)


def _is_handed_on(module: Module, use: ast.expr) -> bool:
    above = module.parent(use)
    if isinstance(above, ast.Return | ast.Yield | ast.Tuple | ast.List | ast.Dict):
        return True
    return (
        isinstance(above, ast.Call)
        and isinstance(above.func, ast.Attribute)
        and above.func.attr in COLLECTING
    )
