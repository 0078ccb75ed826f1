"""Numbers taken out of tensors: `.item()`, `float(t)`, `int(t)`, `.tolist()`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import bracketed, is_number, is_reduction
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

DTYPES = {"int": ".long()", "float": ".double()"}
"""What brings a tensor to what the conversion would give; `.long()` cuts towards zero, as `int` does."""

SETTING = titled(
    "let numbers into the graph",
    why="With this setting `.item()` becomes part of the graph, for any value: all that becomes of the number here is arithmetic "
    "with tensors, an index of a tensor, or a result.",
    rewrite="torch._dynamo.config.capture_scalar_outputs = True",
    fix_class="exact",
)
LIST = titled(
    "keep the list as a tensor",
    why="Every element becomes a Python number, which needs the tensor's values. Index the tensor, or iterate over "
    "`x.unbind()`, which gives tensors of one element.",
    fix_class="tolerance",
)

KEPT = titled(
    "keep it as a tensor",
    why="The number is only used in arithmetic with tensors, and a tensor of one element does there as well. Detached, as a number "
    "would be; arithmetic among such numbers now rounds as tensors do.",
    fix_class="tolerance",
)
UNBOUND = titled(
    "iterate over the tensor",
    why="The elements are only used in arithmetic with tensors, and tensors of one element do there as well.",
    fix_class="tolerance",
)


@advises("gb0124")
def number_from_tensor(site: Site) -> list[Advice]:
    """Keep it a tensor of one element where only arithmetic follows; let the number into the graph where it may be any there."""
    statement = site.statement
    edits = _edits(site) if statement is not None and not isinstance(statement, ast.If | ast.While) else []
    kept = site.edited(statement, edits, KEPT) if statement is not None and edits else []
    return [*kept, *([SETTING] if _may_be_any(site) else [])]


@advises("gb0033", "gb0109", "gb0124")
def list_from_tensor(site: Site) -> list[Advice]:
    """`for v in x.tolist()` over tensors instead."""
    statement = site.statement
    calls = [
        node for node in site.calls if isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"
    ]
    if statement is None or len(calls) != 1:
        return []
    call = calls[0]
    advice: list[Advice] = []
    if isinstance(statement, ast.For) and statement.iter is call and isinstance(statement.target, ast.Name):
        flow = Flow(site)
        if all(flow.absorbed(load) for load in flow.loads(statement.target.id)) and isinstance(
            call.func, ast.Attribute
        ):
            advice = site.edited(
                statement, [(call, f"{site.source(call.func.value)}.detach().unbind()")], UNBOUND
            )
    setting = [SETTING] if site.found.id != "gb0109" and _items_may_be_any(site, call) else []
    return [*advice, *setting, LIST]


def _edits(site: Site) -> list[tuple[ast.expr, str]]:
    """What to write for each number taken in a statement; empty if one of them must stay a number, or may be none of a tensor."""
    flow = Flow(site)
    takens = [taken for call in site.calls if (taken := _taken(call))]
    inner = {id(part) for each in takens for part in ast.walk(each.call) if part is not each.call}
    outer = [each for each in takens if id(each.call) not in inner]
    alone = len(outer) == 1 and not any(isinstance(node, ast.Subscript) for node in site.nodes)
    for each in outer:
        sure = flow.is_tensor(each.value) or (alone and each.is_item)
        if not sure or not flow.absorbed(each.call):
            return []
    return [(each.call, _tensor(site, each)) for each in outer]


class _Taken(NamedTuple):
    """A number taken out of something."""

    call: ast.Call
    value: ast.expr
    convert: str
    is_item: bool


def _taken(call: ast.Call) -> _Taken | None:
    match call:
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
            return _Taken(call, value, "", is_item=True)
        case ast.Call(func=ast.Name(id="int" | "float" as name), args=[ast.Call() as value], keywords=[]) if (
            inner := _taken(value)
        ) is not None and inner.is_item:
            return _Taken(call, inner.value, DTYPES[name], is_item=True)
        case ast.Call(func=ast.Name(id="int" | "float" as name), args=[value], keywords=[]):
            return _Taken(call, value, DTYPES[name], is_item=False)
    return None


def _tensor(site: Site, taken: _Taken) -> str:
    text = bracketed(site.source(taken.value))
    own = "" if is_reduction(site, taken.value) else ".clone().reshape(())"
    return f"{text}.detach(){own}{taken.convert}"


def _may_be_any(site: Site) -> bool:
    """Whether every number taken in the statement may be an open one in the graph.

    A number that picks from a list, counts rounds of a loop, decides a branch, cuts a tensor or is printed has to be known:
    open, it only moves the break to where it is needed, or compiling fails.
    """
    flow = Flow(site)
    taken = [each.call for call in site.calls if (each := _taken(call))]
    inner = {id(part) for call in taken for part in ast.walk(call) if part is not call}
    outer = [call for call in taken if id(call) not in inner]
    return bool(outer) and all(map(flow.stays_open, outer))


def _items_may_be_any(site: Site, call: ast.Call) -> bool:
    """The same for the items of a list: each is read by a number written out, or has a name of its own."""
    flow = Flow(site)
    match site.statement:
        case ast.For(target=ast.Name(id=name), iter=made) if made is call:
            return flow.name_stays_open(name)
        case ast.Assign(targets=[ast.Tuple(elts=items)], value=made) if made is call:
            names = [item.id for item in items if isinstance(item, ast.Name)]
            return len(names) == len(items) and all(map(flow.name_stays_open, names))
        case ast.Assign(targets=[ast.Name(id=name)], value=made) if made is call:
            read = [(load, flow.parent.get(load)) for load in flow.loads(name)]
            return not flow.is_shared(name) and all(
                isinstance(item, ast.Subscript)
                and item.value is load
                and is_number(item.slice)
                and flow.stays_open(item)
                for load, item in read
            )
    return False
