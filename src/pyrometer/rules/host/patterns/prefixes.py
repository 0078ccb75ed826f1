"""Loops that add to a tensor what a network computes from all of it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.rules.host.patterns.loops import FEW_NAME
from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name

if TYPE_CHECKING:
    from pyrometer.source.index import Loop

JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack")

KEEPING = frozenset({"past_key_values", "past", "cache", "kv_cache", "use_cache", "state", "hidden"})
"""Arguments by which a network is given what it computed before."""


KEPT = re.compile(r"cache|^past|_past|(^|_)mems(_|$)|incremental", re.IGNORECASE)
"""Names of what a decoder keeps of the tokens before."""


class Prefix(NamedTuple):
    """One such loop."""

    loop: Loop
    name: str
    """Of the tensor that grows."""
    grown: ast.Assign
    call: ast.Call
    """That computes all of it."""


def prefixes(module: Module) -> Iterator[Prefix]:
    """All such loops of a file, each told once."""
    told: set[ast.AST] = set()
    for join in module.calls(*JOINS):
        grown, loops = module.parent(join), module.loops_around(join)
        if not isinstance(grown, ast.Assign) or not loops or loops[0] in told:
            continue
        if (
            _is_made_anew(module, loops[0], grown)
            or _speaks_of_kept(module, loops[0])
            or _goes_over_layers(loops[0])
        ):
            continue
        name = _grows(module, join, grown)
        if name is None:
            continue
        derived, longer = _derived(loops[0], {name}), _derived(loops[0], {name}, whole=True)
        others = _derived(loops[0], _rounds_names(loops[0])) - derived
        added = [part for part in ast.walk(join) if isinstance(part, ast.Name) and part.id != name]
        call = next((call for call in _calls(loops[0]) if _computes(module, call, longer, others)), None)
        if call is not None and (any(part.id in derived for part in added) or join in module.ancestors(call)):
            told.add(loops[0])
            yield Prefix(loop=loops[0], name=name, grown=grown, call=call)


def _is_made_anew(module: Module, loop: Loop, grown: ast.Assign) -> bool:
    """Whether the loop also gives the name something else, so that it does not grow from round to round."""
    name = module.source(grown.targets[0])
    return any(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id == name
        and node is not grown.targets[0]
        for node in ast.walk(loop)
    )


def _speaks_of_kept(module: Module, loop: Loop) -> bool:
    """Whether the function of a loop keeps what it computed: its names speak of a cache, of keys and values, of steps."""
    function: ast.AST = module.function_of(loop) or loop
    names = (
        getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
        for node in ast.walk(function)
    )
    return any(KEPT.search(name) is not None for name in names if isinstance(name, str))


def _goes_over_layers(loop: Loop) -> bool:
    """Whether the rounds are few: layers of a network, levels, codebooks."""
    if isinstance(loop, ast.While):
        return False
    parts = [part for part in ast.walk(loop.iter) if isinstance(part, ast.Name | ast.Attribute)]
    return any(FEW_NAME.search(last_name(part) or "") is not None for part in parts)


def _grows(module: Module, join: ast.Call, grown: ast.Assign) -> str | None:
    """The name that is joined with itself, its own part first, along another dimension than the first."""
    parts = join.args[0] if join.args else module.keyword(join, "tensors")
    dim = join.args[1] if len(join.args) > 1 else module.keyword(join, "dim") or module.keyword(join, "axis")
    along = None if dim is None else module.literal(dim)
    in_rows = module.name_of(join.func) == "torch.hstack"
    target = grown.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(parts, ast.List | ast.Tuple) or not parts.elts:
        return None
    first = parts.elts[0]
    is_own = isinstance(first, ast.Name) and first.id == target.id
    return target.id if is_own and (in_rows or (isinstance(along, int) and along != 0)) else None


def _rounds_names(loop: Loop) -> set[str]:
    """The names that each round is given anew: layers of a network, say."""
    target = None if isinstance(loop, ast.While) else loop.target
    return (
        {part.id for part in ast.walk(target) if isinstance(part, ast.Name)} if target is not None else set()
    )


def _derived(loop: Loop, names: set[str], *, whole: bool = False) -> set[str]:
    """The names that are computed in the loop from these, with their own; `whole`: and that grow with them."""
    derived, before = set(names), 0
    while len(derived) > before:
        before = len(derived)
        for node in (child for statement in loop.body for child in ast.walk(statement)):
            if isinstance(node, ast.Assign) and _reads(node.value, derived):
                if whole and any(_is_last(part) or _attends(part) for part in ast.walk(node.value)):
                    continue
                targets = node.targets
            elif isinstance(node, ast.For) and _reads(node.iter, derived):
                targets = [node.target]
            else:
                continue
            derived |= {
                part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
            }
    return derived


def _reads(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression reads one of these names as a tensor: neither its sizes nor its type."""
    if isinstance(node, ast.Attribute) and node.attr in {"shape", "device", "dtype", "ndim"}:
        return False
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"size", "dim"}
    ):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_reads(child, names) for child in ast.iter_child_nodes(node))


def _is_last(node: ast.AST) -> bool:
    """Whether an expression takes the last of something: `x[:, -1]`, `x[:, -1:]`."""
    return isinstance(node, ast.Subscript) and ast.unparse(node.slice).rstrip(")").endswith(("-1", "-1:"))


def _calls(loop: Loop) -> list[ast.Call]:
    """The calls in a loop, in the order of the text."""
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _attends(node: ast.AST) -> bool:
    """Whether it calls an attention, in which one query may look at all that was kept."""
    return isinstance(node, ast.Call) and "att" in (last_name(node.func) or "").casefold()


def _computes(module: Module, call: ast.Call, longer: set[str], others: set[str]) -> bool:
    """Whether the same module or function of the program is given all of it in each round, and nothing that was kept."""
    func, name = call.func, module.name_of(call.func)
    owner = func.value if isinstance(func, ast.Attribute) else None
    is_method = owner is not None and not (isinstance(owner, ast.Name) and owner.id == "self")
    if is_method or (name is not None and ("." in name or hasattr(builtins, name))):
        return False
    if _attends(call) or _reads(func, others):  # of the layers of a network each is another one
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = {part.id for part in given if isinstance(part, ast.Name)} | {
        keyword.arg for keyword in call.keywords
    }
    if (names - longer) & KEEPING:
        return False
    if not _runs_network(module, call):
        return False
    return any(_reads(part, longer) and not any(_is_last(node) for node in ast.walk(part)) for part in given)


def _runs_network(module: Module, call: ast.Call) -> bool:
    """Whether a call may run a network: a function of this file that calls no module does not."""
    function = module.classes.called_function(call)
    if function is None:
        return True
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(module.flow.is_module_call(inner) or module.name_of(inner.func) is None for inner in calls)
