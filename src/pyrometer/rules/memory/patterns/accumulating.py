"""Statements of hot code that add tensors to something which outlives the step: a running sum, a list, a set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyrometer.rules.memory.patterns.leaking import last_name
from pyrometer.rules.memory.patterns.sums import added
from pyrometer.rules.rule import Module
from pyrometer.source.index import walk

if TYPE_CHECKING:
    from pyrometer.source.hotness import Hot

Loop = ast.For | ast.AsyncFor | ast.While

TRIMMING = ("clear", "pop", "popleft", "popitem", "remove", "discard")
"""Methods that let entries of a container go."""

EMPTY = frozenset(["list", "set", "collections.deque"])
"""Called without arguments, each makes an empty container without a bound."""

DICTIONARIES = frozenset(["dict", "collections.defaultdict", "collections.OrderedDict"])
"""What makes a dictionary without a bound."""

COLLECTORS = re.compile(r"(Logger|Recorder|Collector|Observer|Tracer|Profiler|Capture)$")
"""Classes that are there to keep what they see."""


class Addition(NamedTuple):
    """One statement that adds to what outlives a step."""

    node: ast.stmt | ast.Call
    target: ast.expr
    """The sum or the container."""
    values: tuple[ast.expr, ...]
    """What is added."""
    how: Literal["sum", "append", "store"]
    hot: Hot
    loop: Loop | None
    """The loop of steps around it, in the same function."""

    @property
    def name(self) -> str:
        """Of the sum or the container, without its owner."""
        return last_name(self.target) or ""

    @property
    def parts(self) -> list[ast.expr]:
        """What is added, and where that is a container that is written out, what it holds."""
        return [part for value in self.values for part in parts_of(value)]

    @property
    def is_local(self) -> bool:
        """Whether it is a plain variable."""
        return isinstance(self.target, ast.Name)


def additions(module: Module) -> Iterator[Addition]:
    """Every addition in hot code that is done in each step and not undone in it."""
    for node, target, values, how in added(module):
        hot = module.hot(node)
        if hot is None or module.is_rare(node) or module.region(node).test:
            continue
        loop = step_loop(module, node)
        if how == "store" and not _is_new_entry(module, target, loop):
            continue
        if outlives(module, node, target, loop):
            yield Addition(node, target, values, how, hot, loop)


def step_loop(module: Module, node: ast.AST) -> Loop | None:
    """The loop of steps that repeats a node, in its own function; not one over the elements of a batch."""
    hot = module.hot(node)
    while hot is not None and hot.per == "batch-element" and hot.loop is not None:
        hot = module.hot(hot.loop)
    around = module.loops_around(node)
    return hot.loop if hot is not None and hot.loop is not None and hot.loop in around else None


def parts_of(value: ast.expr) -> list[ast.expr]:
    """What a tuple, list or dict that is written out holds, and the branches of a condition; else the expression itself."""
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return [part for element in value.elts for part in parts_of(element)]
    if isinstance(value, ast.Dict):
        return [part for node in value.values for part in parts_of(node)]
    if isinstance(value, ast.IfExp):
        return [*parts_of(value.body), *parts_of(value.orelse)]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return [part for keyword in value.keywords for part in parts_of(keyword.value)]
    return [value]


def is_trimmed(module: Module, addition: Addition) -> bool:
    """Whether anything in the file takes entries out of a container, or replaces it while the program runs."""
    name = addition.name
    if any(_is_bounded(module, value) for value in _given(module, addition.target)):
        return True
    if any(
        isinstance(call.func, ast.Attribute) and last_name(call.func.value) == name
        for call in module.method_calls(*TRIMMING)
    ):
        return True
    deleted = (target for node in module.nodes(ast.Delete) for target in node.targets)
    if any(last_name(target) == name for target in deleted):
        return True
    return any(
        last_name(target) == name
        and (_is_part(target) or (_base(addition.target) is None and _is_replaced(module, node)))
        for node in module.nodes(ast.Assign, ast.AnnAssign)
        for target in _targets(node)
        if not isinstance(target, ast.Subscript) or _is_part(target)
    )


def begins_empty(module: Module, addition: Addition) -> bool:
    """Whether every value that is given to the container in the file is an empty one without a bound."""
    given = _given(module, addition.target)
    return bool(given) and all(_is_empty(module, value) for value in given)


def is_collected(module: Module, addition: Addition) -> bool:
    """Whether the class around an addition is there to keep what it sees."""
    owner = module.class_of(addition.node)
    return owner is not None and COLLECTORS.search(owner.name) is not None


def _is_empty(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.List):
        return not value.elts
    return (
        isinstance(value, ast.Call)
        and not value.args
        and not value.keywords
        and module.name_of(value.func) in EMPTY
    )


def _given(module: Module, target: ast.expr) -> list[ast.expr]:
    """The values that the file assigns to a variable or an attribute."""
    if isinstance(target, ast.Name):
        return list(module.assignments(target.id, target))
    return [
        node.value
        for node in module.nodes(ast.Assign, ast.AnnAssign)
        for one in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if node.value is not None and ast.unparse(one) == ast.unparse(target)
    ]


def _is_bounded(module: Module, value: ast.expr) -> bool:
    """Whether a container lets old entries go by itself."""
    if not isinstance(value, ast.Call) or module.name_of(value.func) != "collections.deque":
        return False
    return len(value.args) > 1 or module.keyword(value, "maxlen") is not None


def _is_new_entry(module: Module, target: ast.expr, loop: Loop | None) -> bool:
    """Whether each step stores under another key of a dictionary that begins empty."""
    if not isinstance(target, ast.Subscript) or not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    counted = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    if not any(isinstance(node, ast.Name) and node.id in counted for node in ast.walk(target.slice)):
        return False
    given = _given(module, target.value)
    return bool(given) and all(
        (isinstance(value, ast.Dict) and not value.keys)
        or (isinstance(value, ast.Call) and module.name_of(value.func) in DICTIONARIES)
        for value in given
    )


def _base(target: ast.expr) -> ast.Name | None:
    """The plain variable that is added to, or that holds the container by a key."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target if isinstance(target, ast.Name) else None


def outlives(module: Module, node: ast.AST, target: ast.expr, loop: Loop | None) -> bool:
    """Whether what is added to is the same in the next step."""
    name = last_name(target)
    if name is None:
        return False
    within: ast.AST | None = loop or module.function_of(node)
    if within is None or is_made_within(within, name, node):
        return False
    base = target.value if isinstance(target, ast.Subscript) else target
    if not isinstance(base, ast.Name):
        return _root(base) in ("self", "cls") or loop is not None
    if loop is not None:
        return bool(module.assignments(base.id, node))
    function = module.function_of(node)
    return function is not None and _is_global(module, base)


def is_made_within(within: ast.AST, name: str, addition: ast.AST) -> bool:
    """Whether a name is given a new value in a loop or a function, other than by the addition itself."""
    return any(node is not addition for node in _makers(within).get(name, ()))


@lru_cache(maxsize=32)
def _makers(within: ast.AST) -> dict[str, list[ast.AST]]:
    """What gives names new values in a loop or a function, by the last parts of the names."""
    makers: dict[str, list[ast.AST]] = {}
    for node in walk(within):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.For | ast.AsyncFor | ast.withitem):
            for target in _targets(node):
                name = None if isinstance(target, ast.Subscript) else last_name(target)
                if name is not None:
                    makers.setdefault(name, []).append(node)
    return makers


def _targets(node: ast.AST) -> list[ast.expr]:
    nodes: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        nodes = node.targets
    elif isinstance(node, ast.AnnAssign | ast.For | ast.AsyncFor):
        nodes = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        nodes = [node.optional_vars]
    return [
        part
        for inner in nodes
        for part in (inner.elts if isinstance(inner, ast.Tuple | ast.List) else [inner])
    ]


def _is_part(target: ast.expr) -> bool:
    """Whether an assignment is to a stretch of a container, as in `kept[:] = []`."""
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)


def _is_replaced(module: Module, node: ast.AST) -> bool:
    """Whether an assignment is done while the program runs, and not when the object or the module is made."""
    function = module.function_of(node)
    return function is not None and function.name not in ("__init__", "__post_init__", "setup", "__new__")


def _is_global(module: Module, name: ast.Name) -> bool:
    """Whether a name that a function uses is one of the module's."""
    return any(
        isinstance(target, ast.Name) and target.id == name.id
        for statement in module.tree.body
        for target in _targets(statement)
    ) and not is_made_within(module.function_of(name) or module.tree, name.id, name)


def _root(expression: ast.expr) -> str | None:
    while isinstance(expression, ast.Attribute | ast.Subscript):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None
