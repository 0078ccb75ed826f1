"""Python loops over a dimension of a tensor: one round per row, time step or sample, with tensor operations in each.

A loop counts only when its rounds do not depend on each other. What one round hands to the next (the state of a recurrent
cell, the tensor so far) is found as a name, attribute or element that a round reads before it has written it; sums and
collecting do not count as such.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyrometer.rules.host.patterns.ragged import is_ragged
from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name
from pyrometer.source.knowledge import TORCH_PACKAGES
from pyrometer.source.parameters import LISTED
from pyrometer.source.step_loops import iterables
from pyrometer.source.words import words

BUILTINS = frozenset(dir(builtins))

READING = words("""
    item tolist cpu numpy detach size dim numel to cuda unsqueeze squeeze view reshape flatten permute transpose t contiguous
    clone expand float double half long int bool type copy_ fill_ zero_
    """)
"""Methods that read, move, view or ask about a tensor: a loop of these alone is not work that could be batched."""

JOINING = words("cat concat stack hstack vstack")
"""What only joins what a round has collected."""

TAKING_TEXT = words("to type norm new_zeros new_ones")
"""Methods of tensors that take text."""

SHAPED = words("shape size dim ndim dtype device numel sum mean max min")
"""Attributes of one tensor that a list of tensors does not have."""

FEW_ROUNDS = 16
"""A loop over a written-out range up to this is a handful of cases, not a dimension."""


FEW_NAME = re.compile(
    r"(^|_)(heads?|spks?|speakers?|levels?|scales?|layers?|stages?|depths?|blocks?|codebooks?|quantizers?|streams?|groups?|"
    r"dims?|ndim|axis|axes|kernels?|channels?|masks?|decoders?|orders?|directions?|iters?|iterations?|hops?|copies|views?|experts?|branches|stacks?)$"
)
"""What a handful of rounds is counted by, each with its own parameters more often than not."""


LEVEL_NAME = re.compile(r"(^|_)(pyramid|levels|features|feats|fmaps|stages|hidden_states|scales|octaves)$")
"""What lists of tensors of different sizes are called, where the module that gives them is not known."""

SIZE_NAME = re.compile(
    r"(^|_)(sizes?|shapes?|grid|thw|hw|lengths?|lens|counts?|offsets?|starts?|ends?|indices|ids)($|_)"
)
"""What tensors of numbers are called that say how large or where something is: each round has its own size."""


class Rounds(NamedTuple):
    """A `for` loop or a comprehension: what it goes over, and what it does in each round."""

    node: ast.For | ast.expr
    target: ast.expr
    iter: ast.expr
    body: Sequence[ast.AST]

    @property
    def lineno(self) -> int:
        """Where it begins."""
        return self.node.lineno


class ElementLoop(NamedTuple):
    """A loop over elements of a tensor."""

    loop: Rounds
    tensor: str
    """The text of what is walked over."""
    operations: tuple[str, ...]
    """The text of calls and operators on tensors in one round."""


def element_loops(module: Module) -> Iterator[ElementLoop]:
    """Loops whose rounds are independent and work on an element of a tensor each."""
    return (found for loop in all_rounds(module) if (found := element_loop(module, loop)) is not None)


def all_rounds(module: Module) -> Iterator[Rounds]:
    """The `for` loops and the comprehensions with one `for` of a file; outer ones come before those within."""
    loops = [Rounds(loop, loop.target, loop.iter, loop.body) for loop in module.nodes(ast.For)]
    for made in module.nodes(ast.ListComp, ast.GeneratorExp):
        if len(made.generators) == 1:
            only = made.generators[0]
            loops.append(Rounds(made, only.target, only.iter, [*only.ifs, made.elt]))
    return iter(sorted(loops, key=lambda loop: loop.lineno))


def element_loop(module: Module, loop: Rounds) -> ElementLoop | None:
    """One loop, if its rounds are independent and work on an element of a tensor each."""
    tensor = _walked(module, loop)
    if tensor is None or _leaves_early(module, loop):
        return None
    if (
        _needs_host(module, loop)
        or _is_carried(module, loop)
        or _picks_modules(loop)
        or is_ragged(module, loop)
    ):
        return None
    operations = tuple(_operations(module, loop))
    return ElementLoop(loop, tensor, operations) if operations and not _is_text(module, loop) else None


def _is_text(module: Module, loop: Rounds) -> bool:
    """Whether methods of an element are given text, as those of strings and lists of them are: `row.index("<pad>")`."""
    elements = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in elements
        and node.func.attr not in TAKING_TEXT
        and any(isinstance(module.literal(argument), str) for argument in node.args)
        for node in _within(loop)
    )


def _walked(module: Module, loop: Rounds) -> str | None:
    """What a loop walks over: `for row in x`, or an index into tensors: `for i in range(n): x[:, i]`."""
    parts = list(iterables(module, loop.iter))
    tensor = next((part for part in parts if module.value_of(part).is_tensor), None)
    if tensor is not None:
        if _has_keys(module, tensor) or _counts(module, tensor) or _is_stretch(tensor):
            return None
        holds_sizes = (
            LEVEL_NAME.search(last_name(tensor) or "")
            or SIZE_NAME.search(last_name(tensor) or "")
            or (parts == [loop.iter] and isinstance(loop.target, ast.Tuple))
            or _may_be_a_part_of_a_list(tensor)
            or (len(parts) > 1 and all(LISTED.search(last_name(part) or "") for part in parts))
            or not all(module.value_of(part).is_tensor for part in parts)
        )
        return None if holds_sizes else module.source(tensor)
    return _walked_by_index(module, loop, parts[0])


def _walked_by_index(module: Module, loop: Rounds, source: ast.expr) -> str | None:
    is_range = isinstance(source, ast.Call) and module.name_of(source.func) == "range"
    if not is_range or not isinstance(loop.target, ast.Name):
        return None
    assert isinstance(source, ast.Call)
    bounds = [module.literal(arg) for arg in source.args]
    if bounds and all(isinstance(bound, int) and bound <= FEW_ROUNDS for bound in bounds):
        return None
    if any(
        FEW_NAME.search(name) for name in (loop.target.id, *(last_name(arg) or "" for arg in source.args))
    ):
        return None
    walked = _indexed(module, loop, loop.target.id)
    if walked is None or _may_be_a_part_of_a_list(walked):
        return None
    lists = {part.args[0] for part in source.args if isinstance(part, ast.Call) and _is_length(module, part)}
    counted = {module.source(part) for part in lists if not _has_a_shape(module, part)}
    return None if module.source(walked) in counted else module.source(walked)


def _is_length(module: Module, call: ast.Call) -> bool:
    return module.name_of(call.func) == "len" and len(call.args) == 1


def _may_be_a_part_of_a_list(tensor: ast.expr) -> bool:
    """Whether it is an element of something itself, picked by a name: `levels[i]` of a list of lists as often as a row."""
    return isinstance(tensor, ast.Subscript) and isinstance(
        tensor.slice, ast.Name | ast.Attribute | ast.Subscript
    )


def _has_a_shape(module: Module, node: ast.expr) -> bool:
    """Whether a use of a name, its annotation or what it is given say that it is one tensor: a list has a length as well."""
    if not isinstance(node, ast.Name):
        return True
    function = module.function_of(node)
    uses = (use for use in module.uses(node.id, node) if module.function_of(use) is function)
    if any(isinstance(above := module.parent(use), ast.Attribute) and above.attr in SHAPED for use in uses):
        return True
    arguments = [] if function is None else [*function.args.args, *function.args.kwonlyargs]
    if any(argument.arg == node.id and argument.annotation is not None for argument in arguments):
        return True
    return any(
        isinstance(value, ast.Call) and not module.flow.is_module_call(value)
        for value in module.assignments(node.id, node)
    )


def _is_stretch(node: ast.expr) -> bool:
    """Whether it is a stretch of something, `levels[:-1]`: of a list of tensors more often than of one."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _counts(module: Module, node: ast.expr) -> bool:
    """Whether it is a tensor of the numbers of the rounds: `for i in torch.arange(n)`."""
    return isinstance(node, ast.Call) and module.name_of(node.func) in {"torch.arange", "torch.linspace"}


def _has_keys(module: Module, node: ast.expr) -> bool:
    """Whether a name is used like a dict anywhere: what a module returned is none of one tensor then."""
    if not isinstance(node, ast.Name):
        return False
    for use in module.uses(node.id, node):
        above = module.parent(use)
        if isinstance(above, ast.Attribute) and above.attr in {"items", "keys", "values", "get", "append"}:
            return True
        key = above.slice if isinstance(above, ast.Subscript) else None
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return True
    return False


def _indexed(module: Module, loop: Rounds, name: str) -> ast.expr | None:
    """The tensor that the loop's variable picks an element of."""
    for node in _within(loop):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            picks = any(isinstance(part, ast.Name) and part.id == name for part in parts)
            if picks and module.value_of(node.value).is_tensor:
                return node.value
    return None


def _operations(module: Module, loop: Rounds) -> Iterator[str]:
    """Calls and operators in a round that make tensors of tensors."""
    for node in _within(loop):
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            if module.value_of(node).is_tensor:
                yield module.source(node)
        elif isinstance(node, ast.Call) and module.value_of(node).is_tensor:
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            joins = (module.name_of(node.func) or "").removeprefix("torch.") in JOINING
            if method not in READING and not joins:
                yield module.source(node)


def _within(loop: Rounds) -> Iterator[ast.AST]:
    for statement in loop.body:
        yield from ast.walk(statement)


def _leaves_early(module: Module, loop: Rounds) -> bool:
    """Whether the number of rounds depends on what they compute; leaving at a count or a flag makes fewer rounds alike."""
    return any(
        isinstance(node, ast.Return | ast.Yield | ast.Await)
        or (isinstance(node, ast.Break) and _asks_tensors(module, loop, node))
        for node in _within(loop)
    )


def _needs_host(module: Module, loop: Rounds) -> bool:
    """Whether a round works on the host: it copies its element there, or gives it to a library of other arrays."""
    for node in _within(loop):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"numpy", "cpu"}:
            return True
        root = (module.name_of(node.func) or "torch").partition(".")[0]
        foreign = root not in TORCH_PACKAGES and root not in BUILTINS and root not in {"math", ""}
        if foreign and any(module.value_of(argument).is_tensor for argument in node.args):
            return True
    return False


def _asks_tensors(module: Module, loop: Rounds, leaving: ast.Break) -> bool:
    """Whether a condition around a `break` looks at a tensor, or at what a round has computed."""
    made = {
        node.id for node in _within(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for above in module.ancestors(leaving):
        if above is loop.node:
            return False
        if isinstance(above, ast.If | ast.While | ast.Try):
            tests = [above.test] if not isinstance(above, ast.Try) else []
            parts = [part for test in tests for part in ast.walk(test)]
            if any(isinstance(part, ast.Name) and part.id in made for part in parts):
                return True
            if any(isinstance(part, ast.expr) and module.value_of(part).is_tensor for part in parts):
                return True
    return False


def _picks_modules(loop: Rounds) -> bool:
    """Whether the rounds run different modules: `self.heads[i](x[i])` cannot be one call."""
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for node in _within(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            if any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node.value.slice)):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript | ast.Name):
            picked = node.func.slice if isinstance(node.func, ast.Subscript) else node.func
            if any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(picked)):
                return True
    return False


def _is_carried(module: Module, loop: Rounds) -> bool:
    """Whether a round reads what the round before has written or appended, gradients included."""
    written = _written(loop)
    if _reads_what_it_appends(loop) or (
        isinstance(loop.node, ast.For) and module.heat.loops.trains(loop.node)
    ):
        return True
    seen: set[str] = set()
    running: set[str] = (
        set()
    )  # sums so far: a round that uses one for more than adding to it depends on the round before
    for node in _in_order(loop.body):
        key = _key(node)
        if key is None or key not in written:
            continue
        if isinstance(getattr(node, "ctx", None), ast.Store):
            adds = isinstance(module.parent(node), ast.AugAssign)
            (running if key not in seen and (adds or key in running) else seen).add(key)
        elif key not in seen:
            if not _is_accumulated(module, node, key):
                return True
            running.add(key)
    return _reads_other_elements(loop) or _changes_in_place(loop, seen)


def _reads_what_it_appends(loop: Rounds) -> bool:
    """`scores.append(f(scores[t - 1]))`."""
    nodes = list(_within(loop))
    lists = {
        ast.unparse(node.func.value)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
    }
    return any(isinstance(node, ast.Subscript) and ast.unparse(node.value) in lists for node in nodes)


def _changes_in_place(loop: Rounds, made_here: set[str]) -> bool:
    """Whether a round changes, with `x.add_(…)` or `out=x`, what it also reads and did not make itself."""
    changed = [
        node.func.value
        for node in _within(loop)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and not node.func.attr.endswith("__")
    ]
    changed += [
        keyword.value
        for node in _within(loop)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "out"
    ]
    keys = {key for node in changed if (key := _key(node)) is not None} - made_here
    return any(_key(node) in keys and node not in changed for node in _within(loop))


def _written(loop: Rounds) -> set[str]:
    """Names and attributes that a round assigns, the loop's own variables left out."""
    own = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    keys = {_key(node) for node in _within(loop) if isinstance(getattr(node, "ctx", None), ast.Store)}
    return {key for key in keys if key is not None} - own


def _key(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def _in_order(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Nodes in the order in which they run: of an assignment the value before the targets."""
    for statement in body:
        yield from _evaluated(statement)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        if node.value is not None:
            yield from _evaluated(node.value)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from _evaluated(target)
        return
    if isinstance(node, ast.AugAssign):  # reads its target as well, which `_is_accumulated` judges
        yield from _evaluated(node.value)
        yield node.target
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _evaluated(child)


def _is_accumulated(module: Module, node: ast.AST, key: str) -> bool:
    """Whether a read only serves to add to a sum or the like: `total = total + x`, `worst = max(worst, x)`."""
    statement = module.statement_of(node)
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or _key(statement.targets[0]) != key
    ):
        return False
    value = statement.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Mult | ast.BitOr | ast.BitAnd):
        return value.left is node or value.right is node
    is_extreme = isinstance(value, ast.Call) and (module.name_of(value.func) or "").rpartition(".")[2] in {
        "max",
        "min",
        "maximum",
        "minimum",
    }
    return is_extreme and isinstance(value, ast.Call) and node in value.args


def _reads_other_elements(loop: Rounds) -> bool:
    """Whether a round writes elements of something that it also reads: `out[i] = out[i - 1] + x[i]`."""
    stored = {
        ast.unparse(node.value)
        for node in _within(loop)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) in stored
        for node in _within(loop)
    )
