"""Where records and source text meet: the code of the function that a trace or a profile names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyrometer.rules.rule import Module


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Located(Protocol):
    """Anything that names a file and a line."""

    @property
    def file(self) -> str | None:
        """Path, perhaps shortened."""

    @property
    def line(self) -> int | None:
        """From 1."""


def module_of(file: str | None, modules: Iterable[Module]) -> Module | None:
    """The source of a file; traces shorten paths, so the ends are compared, the longest agreement wins."""
    if file is None:
        return None
    best = max(modules, key=lambda module: _agreement(file, module.path), default=None)
    return best if best is not None and _agreement(file, best.path) else None


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths, each perhaps shortened, may be of one file.

    >>> is_same_file("src/project/model.py", "project/model.py"), is_same_file("a/model.py", "b/model.py")
    (True, False)
    """
    return bool(_agreement(one, other))


def function_at(place: Located, modules: Iterable[Module]) -> tuple[Module, FunctionNode] | None:
    """The function around a line, or the one that begins there: a trace names the line of the `def`."""
    module = module_of(place.file, modules)
    if module is None or place.line is None:
        return None
    around = [
        node
        for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if _first_line(node) <= place.line <= (node.end_lineno or node.lineno)
    ]
    return (module, around[-1]) if around else None


def lines_within(place: Located, modules: Iterable[Module]) -> Iterator[int]:
    """The lines of the function at a place, so that a match there can be told to belong to it."""
    function = function_at(place, modules)
    if function is not None:
        yield from range(_first_line(function[1]), (function[1].end_lineno or function[1].lineno) + 1)


def _first_line(node: FunctionNode) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _agreement(one: str, other: str) -> int:
    """Number of trailing path components that agree; 0 unless all of the shorter path do."""
    left, right = PurePath(one).parts[::-1], PurePath(other).parts[::-1]
    shorter = min(len(left), len(right))
    return shorter if left[:shorter] == right[:shorter] else 0
