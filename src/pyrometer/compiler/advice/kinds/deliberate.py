"""Breaks that somebody asked for: `graph_break()`, `skip_frame()`, functions under `torch.compiler.disable`."""

from __future__ import annotations

import ast

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

ASKED = frozenset({"torch._dynamo.graph_break", "torch._dynamo.skip_frame", "torch._dynamo.step_unsupported"})
DISABLES = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo"})

ASKED_FOR = titled(
    "remove the call",
    why="Somebody asked for this break, perhaps while looking for an error.",
    fix_class="exact",
)
OF_TORCH = titled(
    "keep the call out of compiled code, or leave it",
    why="torch's own code ends the graph here on purpose: there is no call to remove. Where the break costs time, make the call "
    "outside of the compiled function.",
    fix_class="exact",
)
DISABLED = titled(
    "let the function be compiled",
    why="It stands under torch.compiler.disable and runs eagerly, which ends the graph before it. Whoever put it there may have "
    "had a reason: compare results without it.",
    fix_class="tolerance",
)


@advises("gb0025", "gb4297", "gb4636", "gb0275", "gb0284")
def left_in_call(site: Site) -> list[Advice]:
    """Remove the call, where it is the user's."""
    match site.statement:
        case ast.Expr(value=ast.Call(func=function)) if site.full_name(function) in ASKED:
            return _without(site, site.statement, ASKED_FOR) or [ASKED_FOR]
    return [OF_TORCH if site.found.inside_torch else ASKED_FOR]


@advises("gb0098", "gb0099")
def disabled_function(site: Site) -> list[Advice]:
    """Take the decorator off a function of the same file."""
    called = _called(site)
    for function in called if len(called) == 1 else []:
        marks = [
            mark
            for mark in function.decorator_list
            if site.full_name(getattr(mark, "func", mark)) in DISABLES
        ]
        block = site.block(function)
        if len(marks) == 1 and block is not None:
            lines = block.split("\n")
            start = min(mark.lineno for mark in function.decorator_list)
            first, last = (line - start for line in (marks[0].lineno, marks[0].end_lineno or marks[0].lineno))
            return site.replaced(function, "\n".join([*lines[:first], *lines[last + 1 :]]), DISABLED)
    return [DISABLED]


def _called(site: Site) -> list[ast.FunctionDef]:
    """Functions and methods of the file whose names the statement calls."""
    names = {site.full_name(call.func).rpartition(".")[2] for call in site.calls}
    return [node for node in site.everywhere() if isinstance(node, ast.FunctionDef) and node.name in names]


def _without(site: Site, statement: ast.stmt, about: Advice) -> list[Advice]:
    """The block without a statement: its neighbour alone stands for both, `pass` where there is none."""
    block, place = site.siblings(statement)
    if place + 1 < len(block):
        following = site.block(block[place + 1])
        return site.replaced(statement, following, about, block[place + 1]) if following else []
    if place:
        before = site.block(block[place - 1])
        return site.replaced(block[place - 1], before, about, statement) if before else []
    return site.replaced(statement, "pass", about)
