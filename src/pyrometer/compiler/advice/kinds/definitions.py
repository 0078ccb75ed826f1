"""Classes, modules and copies that are made anew in every call."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import FUNCTIONS, Site

CLASS = titled(
    "define the class outside",
    why="A class statement runs code that torch does not trace. Define the class once, outside of the function.",
    fix_class="exact",
)
MODULE = titled(
    "make modules and parameters once",
    why="A parameter made inside the function would be a new one in every call. Make the module in `__init__`.",
    fix_class="exact",
)
COPY = titled(
    "clone the tensor",
    why="torch does not trace copy.deepcopy. `x.detach().clone()` copies the tensor in the graph.",
    fix_class="semantic",
)


@advises("gb8977", "gb0075", "gb0162")
def class_in_function(site: Site) -> list[Advice]:
    """The class moved in front of the function, where it reads nothing of it."""
    statement, function = site.statement, site.function
    if site.found.id == "gb0162":
        return [CLASS]
    if not isinstance(statement, ast.ClassDef) or function is None or function not in site.module.tree.body:
        return [CLASS]
    own = Flow(site).arguments() | _names(function, ast.Store)
    changed = any(_is_attribute_of(node, statement.name) for node in ast.walk(function))
    defined = [
        node
        for node in site.everywhere()
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and node.name == statement.name
    ]
    block, rest = site.block(statement), _without(site, function, statement)
    if _names(statement, ast.Load) & own or changed or len(defined) > 1 or block is None or rest is None:
        return [CLASS]
    return [*site.replaced(function, f"{block}\n\n\n{rest}", CLASS), CLASS]


@advises("gb0264", "gb0225", "gb0226", "gb0228", "gb0235", "gb0237", "gb0119")
def module_in_function(site: Site) -> list[Advice]:
    """Words on modules and parameters that are made in `forward`."""
    del site
    return [MODULE]


@advises("gb4198", "gb0179")
def deep_copy(site: Site) -> list[Advice]:
    """`x.detach().clone()` where the copy is of a tensor."""
    statement = site.statement
    copies = [
        call for call in site.calls if site.full_name(call.func) == "copy.deepcopy" and len(call.args) == 1
    ]
    flow = Flow(site)
    if statement is None or not copies or not all(flow.is_tensor(call.args[0]) for call in copies):
        return [COPY]
    edits = [
        (call, f"{site.source(call.args[0])}.detach().clone()")
        for call in copies
        if isinstance(call.args[0], ast.Name)
    ]
    return [
        *site.edited(statement, edits if len(edits) == len(copies) else [], COPY),
        COPY,
    ]


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {
        inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, context)
    }


def _is_attribute_of(node: ast.AST, name: str) -> bool:
    """Whether an attribute of a name is set: what is made anew in each call would then be shared by all."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner), ctx=ast.Store() | ast.Del()):
            return owner == name
    return False


def _without(site: Site, function: ast.stmt, inner: ast.stmt) -> str | None:
    """The text of a function without one of its statements; `None` if none would be left."""
    body = getattr(function, "body", [])
    whole = site.block(function)
    if inner not in body or len(body) < 2 or whole is None:
        return None
    start = min([function.lineno, *(each.lineno for each in getattr(function, "decorator_list", []))])
    first = min([inner.lineno, *(each.lineno for each in getattr(inner, "decorator_list", []))]) - start
    lines = whole.split("\n")
    return "\n".join([*lines[:first], *lines[(inner.end_lineno or inner.lineno) - start + 1 :]])
