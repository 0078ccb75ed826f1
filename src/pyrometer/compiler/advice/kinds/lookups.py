"""Lists and dictionaries of numbers that a tensor's value picks from."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.expressions import is_number
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

WORDS = titled(
    "make the table a tensor",
    why="Which entry is taken depends on a tensor's value. Keep numbers in a tensor and index that; of modules run all and select "
    "with torch.where, or branch with torch.cond.",
    fix_class="tolerance",
)

ABOUT = titled(
    "make the table a tensor",
    why="The number is only used in arithmetic with tensors. Picked out of a tensor it stays in the graph.",
    fix_class="tolerance",
)


@advises("gb0124", "gb0070", "gb7596", "gb0203", "gb0196", "gb0033")
def lookup_by_tensor(site: Site) -> list[Advice]:
    """`table[index]` with numbers in the table: the table as a tensor."""
    statement = site.statement
    subscripts = [node for node in site.nodes if isinstance(node, ast.Subscript)]
    tables = [(node, numbers) for node in subscripts if (numbers := _numbers(site, node)) is not None]
    if statement is None or not tables:
        return [WORDS] if site.found.id in {"gb0070", "gb7596", "gb0203"} else []
    flow = Flow(site)
    alone = len(tables) == 1 and not any(_takes_number(node) for node in site.nodes)
    edits = [(node, _picked(site, node, numbers, sure=alone)) for node, numbers in tables]
    if (
        site.torch is None
        or not all(flow.absorbed(node) for node, _ in tables)
        or not all(text for _, text in edits)
    ):
        return [WORDS]
    advice = site.edited(
        statement,
        edits,
        ABOUT,
    )
    return [*advice, WORDS]


def _numbers(site: Site, node: ast.Subscript) -> str | None:
    """The table as a list's text, or its name, where it is one of numbers for 0, 1, 2, …; `None` if unsure."""
    if not isinstance(node.value, ast.Name):
        return _listed(node.value)
    name = node.value.id
    assigned = site.bound_once(name)
    return None if assigned is None or _is_changed(site, node.value) else _listed(assigned)


def _listed(node: ast.AST) -> str | None:
    match node:
        case ast.List(elts=values) | ast.Tuple(elts=values):
            pass
        case ast.Dict(keys=keys, values=values):
            if [getattr(key, "value", None) for key in keys] != list(range(len(keys))):
                return None
        case _:
            return None
    kinds = {type(ast.literal_eval(value)) for value in values if is_number(value)}
    if all(map(is_number, values)) and len(kinds) == 1:
        return f"[{', '.join(map(ast.unparse, values))}]"
    return None


def _is_changed(site: Site, table: ast.Name) -> bool:
    """Whether the table may be changed: it is written to, has a method called, or is handed on."""
    above = map(site.module.parent, site.module.uses(table.id, table))
    return not all(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) for node in above)


def _picked(site: Site, node: ast.Subscript, numbers: str, *, sure: bool) -> str:
    """The entry out of a tensor; empty if the index is not surely a tensor.

    Args:
        site: of the break.
        node: `table[index]`.
        numbers: the table's text.
        sure: whether nothing else in the statement can have asked for a tensor's value.
    """
    index = node.slice
    match index:
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
            index, sure = value, True
    if not isinstance(index, ast.Name) or not (sure or Flow(site).is_tensor(index)):
        return ""
    kind = f", dtype={site.torch}.float64" if "." in numbers or "e" in numbers else ""
    return (
        f"{site.torch}.tensor({numbers}{kind}, device={index.id}.device).take({index.id}.reshape(()).long())"
    )


def _takes_number(node: ast.AST) -> bool:
    """Whether a call may take a number out of a tensor, other than as an index."""
    match node:
        case (
            ast.Call(func=ast.Attribute(attr="item" | "tolist"))
            | ast.Call(func=ast.Name(id="int" | "float" | "bool" | "range"))
        ):
            return True
        case ast.Slice():
            return True
    return False
