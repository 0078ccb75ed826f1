"""The code at which a graph broke: its statement, what surrounds it, and how to write a part of it anew.

Only text that is still what ran is looked at: the file's line must read as the break says. A block that shares its lines
with other statements, or holds text over several lines, is not rewritten: indentation there is not ours to change.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias

import msgspec

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break
from pyrometer.errors import InputError
from pyrometer.source.edit import apply_edits, replace
from pyrometer.source.lines import column_of
from pyrometer.source.module import Module

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Edits: TypeAlias = Sequence[tuple[ast.expr, str]]
"""Nodes, and what to write in their place."""


class Site:
    """A break's place in its file. Everything is `None` or empty where the source is not at hand."""

    def __init__(self, found: Break, text: str | None = None) -> None:
        self.found = found
        self.text, self.line = _text(found) if text is None else (text, found.line)
        self.module = _parsed(self.text) or Module.parse("", "")
        self.parents = _path(self.module.tree, self.line)
        """From the module down to the innermost statement."""

    @classmethod
    def of_text(cls, text: str) -> Site:
        """A place in a text that stands in no file."""
        return cls(Break(id=None, reason="", file="", line=1), text)

    @property
    def statement(self) -> ast.stmt | None:
        """The innermost statement of the line."""
        return next((node for node in reversed(self.parents) if isinstance(node, ast.stmt)), None)

    @property
    def function(self) -> Function | None:
        """The innermost function around the statement."""
        return next((node for node in reversed(self.parents[:-1]) if isinstance(node, FUNCTIONS)), None)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of the statement itself, without the statements inside of it."""
        nodes: list[ast.AST] = [self.statement] if self.statement is not None else []
        for node in nodes:
            nodes += [
                child
                for child in ast.iter_child_nodes(node)
                if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
            ]
        return nodes

    @property
    def calls(self) -> list[ast.Call]:
        """The calls in the statement itself."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    def everywhere(self) -> Iterator[ast.AST]:
        """Every node of the file."""
        return ast.walk(self.module.tree)

    @property
    def loops(self) -> list[ast.stmt]:
        """Loops of that function around the statement, the outermost first; the statement itself may be one."""
        inside = self.parents[self.parents.index(self.function) :] if self.function else self.parents
        return [node for node in inside if isinstance(node, ast.For | ast.While | ast.AsyncFor)]

    @cached_property
    def torch(self) -> str | None:
        """What the file calls torch at the statement; `None` if it does not import it under a name of its own."""
        names = (alias.asname or "torch" for alias in self.module.nodes(ast.alias))
        return next((name for name in names if self.meaning(name) == "torch"), None)

    def meaning(self, name: str) -> str | None:
        """The dotted name that a name at the statement stands for, imports followed; `None` for anything local."""
        names, bound = self.module.names, self._bindings(name)
        return names.bound_to(bound[0], name, bound[1], 0) if bound else None

    def full_name(self, node: ast.AST) -> str:
        """A dotted name with the modules' own names in it: `np.random.rand` is `numpy.random.rand`."""
        dotted = _dotted(node)
        first, _, rest = dotted.partition(".")
        full = self.meaning(first) or first
        return f"{full}.{rest}" if rest else full

    def is_imported(self, node: ast.AST) -> bool:
        """Whether a dotted name begins with a module, or with something out of one."""
        return self.meaning(_dotted(node).partition(".")[0]) is not None

    def bound_once(self, name: str) -> ast.expr | None:
        """What the file binds a name to, once and for all; `None` if it does so nowhere or again."""
        bound = self._bindings(name)
        only = bound[1][0] if bound and len(bound[1]) == 1 else None
        return self.module.names.assigned_to(only) if isinstance(only, ast.Name) else None

    def constant(self, name: str) -> float | None:
        """The number that the file binds a name to at its top, once and for all."""
        bound = self._bindings(name)
        value = self.bound_once(name) if bound and bound[0] is self.module.tree else None
        number = self.module.literal(value) if value is not None else None
        return number if isinstance(number, int | float) and not isinstance(number, bool) else None

    def _bindings(self, name: str) -> tuple[ast.AST, list[ast.AST]] | None:
        return self.module.scopes.lookup(name, self.statement or self.module.tree)

    def siblings(self, node: ast.AST) -> tuple[list[ast.stmt], int]:
        """The block that a statement stands in, and its place there."""
        above = self.parents[self.parents.index(node) - 1] if node in self.parents[1:] else self.module.tree
        for _, block in ast.iter_fields(above):
            if isinstance(block, list) and node in block:
                return block, block.index(node)
        return [], 0

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, on one line."""
        written = self.module.source(node) if node in self.module.index.parents else ""
        return written if written and "\n" not in written else ast.unparse(node)

    def is_elif(self, node: ast.If) -> bool:
        """Whether an `if` is written as an `elif`: a part of the one above, not a statement of its own."""
        return self.module.lines[node.lineno - 1].lstrip().startswith("elif")

    def unused_name(self, wanted: str) -> str:
        """A name like the wanted one that the file does not use."""
        used = {getattr(node, "id", getattr(node, "arg", "")) for node in self.everywhere()}
        names = (wanted if not number else f"{wanted}_{number}" for number in itertools.count())
        return next(name for name in names if name not in used)

    def block(self, first: ast.stmt, last: ast.stmt | None = None) -> str | None:
        """The lines of statements without their indentation; `None` if they cannot be replaced as lines."""
        return self._edited(first, last or first, ())

    def replaced(
        self, first: ast.stmt, after: str, about: Advice, last: ast.stmt | None = None
    ) -> list[Advice]:
        """A rewrite of whole statements, from the first to the last; none if that cannot be done safely.

        Args:
            first: statement to replace.
            after: what to write instead, not indented.
            about: slug, title, reason and fix class.
            last: statement to replace; those between go too.
        """
        return _rewrites(self.block(first, last), after, about)

    def edited(self, statement: ast.stmt, edits: Edits, about: Advice) -> list[Advice]:
        """A rewrite of parts of one statement; all else in it stays, comments too."""
        return _rewrites(self.block(statement), self._edited(statement, statement, edits), about)

    def _edited(self, first: ast.stmt, last: ast.stmt, edits: Edits) -> str | None:
        lines = self.module.lines
        top, bottom = _first_line(first) - 1, (last.end_lineno or last.lineno) - 1
        indent = lines[top][: column_of(lines[top], first.col_offset)]
        tail = lines[bottom][column_of(lines[bottom], last.end_col_offset or 0) :].strip()
        if (
            indent.strip()
            or (tail and not tail.startswith("#"))
            or (indent and self._has_long_text(top, bottom))
        ):
            return None
        text = apply_edits(self.text, [replace(self.module, node, new) for node, new in edits])
        after = len(lines) - bottom - 1
        block = text.split("\n")[top : -after or None]
        if any(line.strip() and not line.startswith(indent) for line in block):
            return None
        return "\n".join(line[len(indent) :] if line.strip() else "" for line in block)

    def _has_long_text(self, top: int, bottom: int) -> bool:
        """Whether a string between two lines spans several: to indent it would change it."""
        return any(
            isinstance(node, ast.Constant | ast.JoinedStr)
            and top < node.lineno != node.end_lineno
            and node.lineno <= bottom + 1
            for node in self.everywhere()
        )


def _text(graph_break: Break) -> tuple[str, int]:
    """The file, or the one line that is known; and the break's line in it."""
    if not graph_break.source:
        return "", 0
    lines = linecache.getlines(graph_break.file)
    if (
        0 < graph_break.line <= len(lines)
        and lines[graph_break.line - 1].strip() == graph_break.source.strip()
    ):
        return "".join(lines), graph_break.line
    return graph_break.source.strip(), 1


@lru_cache(maxsize=16)
def _parsed(text: str) -> Module | None:
    try:
        return Module.parse("", text) if text else None
    except InputError:
        return None


def _path(tree: ast.Module, line: int) -> tuple[ast.AST, ...]:
    """Nodes around a line, down to its innermost statement; empty if there is none."""
    path: list[ast.AST] = [tree]
    while True:
        outer = path[-1]
        inner = next((node for node in _statements(outer) if _holds(node, line)), None)
        if inner is None or (outer is not tree and inner.lineno == outer.lineno):  # type: ignore[attr-defined]
            return tuple(path) if len(path) > 1 else ()  # `if a: b` on one line: the break may lie in either
        path.append(inner)


def _statements(node: ast.AST) -> Iterator[ast.stmt | ast.ExceptHandler]:
    """The statements right below a node, and the handlers of a `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield child
        elif isinstance(child, ast.match_case):
            yield from child.body


def _holds(node: ast.stmt | ast.ExceptHandler, line: int) -> bool:
    return _first_line(node) <= line <= (node.end_lineno or node.lineno)


def _first_line(node: ast.AST) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(int(decorator.lineno) for decorator in (node, *decorators))  # type: ignore[attr-defined]


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            before = _dotted(value)
            return f"{before}.{attr}" if before else ""
    return ""


def _rewrites(before: str | None, after: str | None, about: Advice) -> list[Advice]:
    if not before or not after or before == after or _parsed(after) is None:
        return []
    return [msgspec.structs.replace(about, replaces=before, rewrite=after)]
