"""A tensor that a loop grows, written with a list that is joined once after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from pyrometer.rules.kernels.patterns.better import bracketed
from pyrometer.rules.rule import Module
from pyrometer.source.edit import Edit, replace
from pyrometer.source.mutation import assigned_in, changed_in_place, names_in, sources_of
from pyrometer.source.rewriting import insert_after, insert_before, unused_name

Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"

VIEWS = frozenset(
    ["as_strided", "as_tensor", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "chunk", "detach", "diagonal", "expand_copy",
     "flatten", "from_dlpack", "from_numpy", "frombuffer", "imag", "movedim", "narrow", "permute", "ravel", "real", "reshape", "select",
     "split", "squeeze", "swapaxes", "swapdims", "t", "tensor_split", "transpose", "unbind", "unflatten", "unsqueeze", "view_as_complex",
     "view_as_real", "contiguous", "conj", "positive", "clamp_", "relu_"]
)  # fmt: skip
"""Functions of torch whose result may be a view of what they are given, or that itself."""

PLAIN = frozenset(f"torch.{name}" for name in ("cat", "concat", "concatenate"))
"""Joins along a dimension that the call says; of one tensor alone they give that tensor again."""


def collected(module: Module, call: ast.Call) -> list[Edit]:
    """Edits that collect the pieces in a list and join it after the loop, bit by bit the same.

    None where that is not certain: the result is read elsewhere in the loop, is an attribute or a global name, or the loop may
    be left in another way than by its end.
    """
    statement = module.statement_of(call)
    parts = call.args[0] if call.args else None
    if (
        module.name_of(call.func) not in PLAIN
        or not isinstance(statement, ast.Assign)
        or statement.value is not call
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
        or not isinstance(parts, (ast.List, ast.Tuple))
    ):
        return []
    name, elements = statement.targets[0].id, parts.elts
    own = [place for place, element in enumerate(elements) if _is(element, name)]
    if len(own) != 1 or own[0] not in {0, len(elements) - 1}:
        return []
    pieces = [element for element in elements if not _is(element, name)]
    is_behind = own[0] == 0
    if any(isinstance(piece, ast.Starred) for piece in pieces) or not (
        pieces and (is_behind or len(pieces) == 1)
    ):
        return []
    begun = _begun_by_none(module, statement, name, pieces)
    loop = _loop(module, begun or statement, name, {id(node) for node in ast.walk(begun or statement)})
    if loop is None or not _is_certain(module, loop, name, call):
        return []
    if begun is not None and not _starts_as_none(module, loop, name):
        return []
    collection = unused_name(module, f"{name}_parts", "parts")
    texts = ", ".join(_kept(module, piece, loop) for piece in pieces)
    added = f"{collection}.append({texts})" if len(pieces) == 1 else f"{collection} += [{texts}]"
    order = collection if is_behind else f"{collection}[::-1]"
    rest: list[ast.expr | ast.keyword] = [*call.args[1:], *call.keywords]
    options = "".join(f", {module.source(node)}" for node in rest)  # type: ignore[arg-type] # keywords have a span, too
    join = f"{name} = {module.source(call.func)}({order}{options})"
    start = [value for value in module.assignments(name, loop) if value is not call]
    copy = "" if start and all(_is_new_value(module, value) for value in start) else ".clone()"
    first, last = f"{collection} = [{name}{copy}]", join
    if any(
        module.literal(_value(node)) not in (0, -1) for node in rest
    ):  # a first tensor may lack the dimension
        last = f"{join} if len({collection}) > 1 else {name}"
    if begun is not None:
        first, last = f"{collection} = []", f"{join} if {collection} else None"
    edits = [
        insert_before(module, loop, first),
        replace(module, begun or statement, added),
        insert_after(module, loop, last),
    ]
    return [] if None in edits else [change for change in edits if change is not None]


def _value(node: ast.expr | ast.keyword) -> ast.expr:
    return node.value if isinstance(node, ast.keyword) else node


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _begun_by_none(module: Module, statement: ast.Assign, name: str, pieces: list[ast.expr]) -> ast.If | None:
    """The `if name is None: name = piece` whose `else` is the statement, or the other way round."""
    branch = module.parent(statement)
    if not isinstance(branch, ast.If) or len(branch.body) != 1 or len(branch.orelse) != 1 or len(pieces) != 1:
        return None
    test = branch.test
    if not (
        isinstance(test, ast.Compare)
        and _is(test.left, name)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    ):
        return None
    first, grows = branch.body[0], branch.orelse[0]
    if isinstance(test.ops[0], ast.IsNot):
        first, grows = grows, first
    elif not isinstance(test.ops[0], ast.Is):
        return None
    is_same = (
        grows is statement
        and isinstance(first, ast.Assign)
        and len(first.targets) == 1
        and _is(first.targets[0], name)
        and ast.dump(first.value) == ast.dump(pieces[0])
    )
    return branch if is_same else None


def _starts_as_none(module: Module, loop: Loop, name: str) -> bool:
    """Whether the statement right above the loop, but for assignments of other names, gives the name None."""
    above = module.parent(loop)
    block = next(
        (
            field
            for field in (getattr(above, part, None) for part in ("body", "orelse", "finalbody"))
            if isinstance(field, list) and loop in field
        ),
        [],
    )
    for statement in reversed(block[: block.index(loop)] if block else []):
        if name in assigned_in(statement):
            return (
                isinstance(statement, (ast.Assign, ast.AnnAssign))
                and isinstance(statement.value, ast.Constant)
                and statement.value.value is None
            )
    return False


def _loop(module: Module, grower: ast.stmt, name: str, own: set[int]) -> Loop | None:
    """The outermost loop that does nothing with the name but grow it."""
    found = None
    for loop in module.loops_around(grower):
        if any(_is(node, name) and id(node) not in own for node in ast.walk(loop)):
            break
        found = loop
    return found


def _kept(module: Module, piece: ast.expr, loop: Loop) -> str:
    """The text of a piece as it is added: a copy, unless it is surely a new tensor that nothing else holds.

    Without one, what writes into it later would change the result, and a view would keep all of what it is a view of.
    """
    if _is_new(module, piece, loop):
        return module.source(piece)
    return f"{bracketed(module, piece)}.clone()"


def _is_new(module: Module, piece: ast.expr, loop: Loop) -> bool:
    whole = _unsqueezed(piece)
    if isinstance(whole, ast.Name):
        given = module.assignments(whole.id, whole)
        written = sources_of(changed_in_place(loop), loop)
        return (
            bool(given) and whole.id not in written and all(_is_new_value(module, value) for value in given)
        )
    return _is_new_value(module, whole)


def _unsqueezed(piece: ast.expr) -> ast.expr:
    """What a piece is a view of, with a dimension put in: `row` of `row[None]` and `row.unsqueeze(0)`."""
    if (
        isinstance(piece, ast.Subscript)
        and isinstance(piece.slice, ast.Constant)
        and piece.slice.value is None
    ):
        return piece.value
    if (
        isinstance(piece, ast.Call)
        and isinstance(piece.func, ast.Attribute)
        and piece.func.attr == "unsqueeze"
    ):
        return piece.func.value
    return piece


def _is_new_value(module: Module, value: ast.expr) -> bool:
    """Arithmetic, and functions of torch that make a tensor."""
    if isinstance(value, ast.Call):
        name = module.name_of(value.func) or ""
        return name.startswith("torch.") and name.rpartition(".")[2] not in VIEWS and name.count(".") == 1
    return isinstance(value, (ast.BinOp, ast.UnaryOp))


def _is_certain(module: Module, loop: Loop, name: str, call: ast.Call) -> bool:
    """Whether joining later gives the same: nobody else sees the name meanwhile, and the dimension stays."""
    function = module.function_of(loop) or module.tree
    if isinstance(loop, ast.AsyncFor) or any(_ways_out(loop)):
        return False
    if any(isinstance(above, (ast.Try, ast.With)) for above in _around(module, loop)):
        return False
    nodes = list(ast.walk(function))
    if any(
        isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in nodes
    ) or _is_seen_within(function, name):
        return False
    others = [*call.args[1:], *call.keywords]
    if names_in(*others) & assigned_in(loop) or any(
        isinstance(part, ast.Call) for other in others for part in ast.walk(other)
    ):
        return False
    return all(keyword.arg in {"dim", "axis"} for keyword in call.keywords)


def _around(module: Module, loop: Loop) -> Iterator[ast.AST]:
    for above in module.ancestors(loop):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        yield above


def _ways_out(loop: Loop) -> Iterator[ast.AST]:
    """What suspends a loop or leaves its function in the middle; what a `return` gives back cannot be the name."""
    return (node for node in ast.walk(loop) if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)))


def _is_seen_within(function: ast.AST, name: str) -> bool:
    """Whether a function or lambda within this one reads the name whenever it is called."""
    return any(
        isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        and inner is not function
        and name in names_in(inner)
        for inner in ast.walk(function)
    )
