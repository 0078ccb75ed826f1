"""Whether the program's own text takes entries out of a container that grows: then it may have an end that is not reached yet.

What is read: methods that let go (`clear`, `pop`, …), `del`, stores into a list by index, a comparison of its length, and giving
the name a new value while the program runs: in a loop, in a method that does not make the object, or in a function that a
loop calls.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tokenize
from collections.abc import Iterator

from pyrometer.memory.holders.record import Holder
from pyrometer.source.ownership import owner_of

TRIMMING = frozenset({"clear", "pop", "popleft", "popitem"})
EMPTYING = frozenset({"clear", "popitem"})
"""Of what has keys: what takes one entry out by its key cleans up after one step, and leaves what other steps left."""

MAKING = frozenset({"__init__", "__post_init__", "__new__", "setup"})

_ORDER = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BY_KEY = ("dict", "OrderedDict", "defaultdict", "Counter", "UserDict")


def where_it_ends(holder: Holder, container: str) -> str | None:
    """The line that may let go what the container has, as `file:line`; `None` where the user's files have none.

    Args:
        holder: who keeps what grows.
        container: its expression, such as `self.buffer.rows`.
    """
    names: list[str] = re.findall(r"[A-Za-z_]\w*", container)
    if not names or holder.container is None:
        return None
    by_key = holder.container in _BY_KEY
    is_local = len(names) == 1 and holder.root in ("frame local", "closure", "generator")
    owner = (holder.owner or "").rpartition(".")[2]
    for file in _files(holder, elsewhere=len(set(names) - {"self", "cls"}) > 1):
        heirs_of = "" if file == holder.file else owner
        lines = _ends_in(file, names[-1], by_key, owner if is_local else "", heirs_of)
        if lines:
            return f"{file}:{lines[0]}"
    return None


def _files(holder: Holder, *, elsewhere: bool) -> Iterator[str]:
    """The file of the owner, then, for what has a name of two parts such as `buffer.rows`, all others of the user's."""
    files = [holder.file] if holder.file else []
    if elsewhere:
        files += [file for module in list(sys.modules.values()) if (file := _file_of(module)) is not None]
    for file in dict.fromkeys(files):
        if owner_of(file) == "user":
            yield file


def _file_of(module: object) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) and file.endswith(".py") else None


@functools.lru_cache(maxsize=256)
def _ends_in(file: str, name: str, by_key: bool, function: str, heirs_of: str) -> list[int]:
    try:
        with tokenize.open(file) as source:
            text = source.read()
        tree = ast.parse(text) if name in text else None
    except (OSError, SyntaxError, ValueError):  # a file that is gone, or no longer Python: it says nothing
        return []
    return [] if tree is None else ends_in(tree, name, by_key=by_key, function=function, heirs_of=heirs_of)


def ends_in(
    tree: ast.Module, name: str, *, by_key: bool = False, function: str = "", heirs_of: str = ""
) -> list[int]:
    r"""The lines of a file that may let go what a container of this name has; of a local variable, those of its function.

    In a file that is not the owner's, `self` is the owner only in classes that derive from it (`heirs_of`).

    >>> ends_in(ast.parse("rows = []\nfor row in data:\n    rows.append(row)\n    if len(rows) > 9: del rows[0]"), "rows")
    [4]
    >>> ends_in(ast.parse("rows = []\nfor row in data:\n    rows.append(row)"), "rows")
    []
    """
    called = _called_in_loops(tree)
    lines = []
    for node, around in _with_surroundings(tree, ()):
        outer = [scope for scope in around if isinstance(scope, _FUNCTIONS)]
        if function and all(scope.name != function for scope in outer):
            continue
        if not function and any(_is_own(scope, name) for scope in outer):
            continue
        ends = _lets_go(node, name, by_key) or _is_replaced(node, name, around, called)
        if ends and not (heirs_of and _is_anothers(node, name, around, heirs_of)):
            lines.append(getattr(node, "lineno", 0))
    return sorted(set(lines))


def _is_anothers(node: ast.AST, name: str, around: tuple[ast.AST, ...], heirs_of: str) -> bool:
    """Whether it is about the attribute of another class, which has the same name."""
    through_self = any(
        isinstance(part, ast.Attribute) and part.attr == name and _last(part.value) in {"self", "cls"}
        for part in ast.walk(node)
    )
    classes = [scope for scope in around if isinstance(scope, ast.ClassDef)]
    return through_self and bool(classes) and heirs_of not in map(_last, classes[-1].bases)


@functools.lru_cache(maxsize=4096)
def _is_own(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a plain variable of this name is a function's own, and not the one that outlives it."""
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in ast.walk(function)):
        return False
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return any(argument.arg == name for argument in given) or any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(function)
    )


def _lets_go(node: ast.AST, name: str, by_key: bool) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in (EMPTYING if by_key else TRIMMING):
            return _last(function.value) == name
        heap = isinstance(function, ast.Name | ast.Attribute) and (_last(function) or "").startswith("heap")
        return heap and bool(node.args) and _last(node.args[0]) == name and _last(function) != "heappush"
    if isinstance(node, ast.Delete):
        whole = (target for target in node.targets if not by_key or not isinstance(target, ast.Subscript))
        return any(_last(_owner(target)) == name for target in whole)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return isinstance(node.ops[0], _ORDER) and any(_is_length(side, name) for side in sides)
    if isinstance(node, ast.Assign):
        return any(
            isinstance(target, ast.Subscript)
            and _last(target.value) == name
            and (not by_key or isinstance(target.slice, ast.Slice))
            for target in node.targets
        )
    return False


def _is_replaced(node: ast.AST, name: str, around: tuple[ast.AST, ...], called: set[str]) -> bool:
    """Whether the name is given a new value while the program runs."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    given = [part for target in targets for part in _parts(target)]
    own = [part for part in given if isinstance(part, ast.Name | ast.Attribute) and _last(part) == name]
    if not own:
        return False
    functions = [outer for outer in around if isinstance(outer, _FUNCTIONS)]
    within = around[around.index(functions[-1]) + 1 :] if functions else around
    if any(isinstance(outer, _LOOPS) for outer in within):
        return True
    if not functions or functions[-1].name in MAKING:
        return False
    if isinstance(own[0], ast.Attribute):
        return any(isinstance(outer, ast.ClassDef) for outer in around)
    return functions[-1].name in called


def _called_in_loops(tree: ast.Module) -> set[str]:
    """Functions and methods that a loop calls, by their last names."""
    calls = (
        node
        for loop in ast.walk(tree)
        if isinstance(loop, _LOOPS)
        for node in ast.walk(loop)
        if isinstance(node, ast.Call)
    )
    return {name for call in calls if (name := _last(call.func)) is not None}


def _with_surroundings(
    node: ast.AST, around: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    waiting = [(node, around)]
    while waiting:
        inner, outer = waiting.pop()
        yield inner, outer
        waiting.extend((child, (*outer, inner)) for child in ast.iter_child_nodes(inner))


def _is_length(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "len"
        and bool(node.args)
        and _last(node.args[0]) == name
    )


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]


def _owner(target: ast.expr) -> ast.expr:
    """Of an entry or a stretch what it is of; a name that is deleted itself lets go, too."""
    return target.value if isinstance(target, ast.Subscript) else target


def _last(node: ast.expr) -> str | None:
    """The last part of a name."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
