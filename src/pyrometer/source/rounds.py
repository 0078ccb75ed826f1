"""What one round of a loop, or one run of a function, holds: collected once, since many questions are about it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.source.index import CHILD_FIELDS, Loop


class Round(NamedTuple):
    """The nodes of interest that run as part of some statements, in the order of the text.

    Attributes:
        calls: each with the loops within these statements that are around it, outermost first.
        loops: all of them, those within others included.
        stored: names that are given a value.
    """

    calls: list[tuple[ast.Call, tuple[Loop, ...]]]
    loops: list[Loop]
    stored: set[str]


def round_of(body: Sequence[ast.stmt]) -> Round:
    r"""Collect; the bodies of nested functions and classes do not run.

    >>> found = round_of(ast.parse("a = f(b)\nfor c in d:\n    g(c)").body)
    >>> [(call.func.id, len(loops)) for call, loops in found.calls], sorted(found.stored)
    ([('f', 0), ('g', 1)], ['a', 'c'])
    """
    found = Round([], [], set())
    stack: list[tuple[ast.AST, tuple[Loop, ...]]] = [(node, ()) for node in reversed(body)]
    while stack:
        node, loops = stack.pop()
        if isinstance(node, ast.Call):
            found.calls.append((node, loops))
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                found.stored.add(node.id)
            continue
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            found.loops.append(node)
            loops = (*loops, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stack.extend((inner, loops) for inner in reversed(node.decorator_list))
            continue
        for field in reversed(CHILD_FIELDS[node.__class__]):
            held = getattr(node, field, None)
            if held.__class__ is list:
                stack.extend((inner, loops) for inner in reversed(held) if isinstance(inner, ast.AST))
            elif isinstance(held, ast.AST):
                stack.append((held, loops))
    return found
