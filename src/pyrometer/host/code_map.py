"""Instructions joined with the source: statement, loops and function around them, and what they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.host.samples import Code, Spot
from pyrometer.source.index import FunctionNode
from pyrometer.source.module import Module

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Loop = ast.For | ast.AsyncFor | ast.While | Comprehension
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Names of code that is a part of the function around it."""

TURNS = ("FOR_ITER", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "SEND")
"""Instructions that take a loop from one round to the next."""


class FunctionAt(NamedTuple):
    """A function of the user's, by the first line of its definition; that of a module is 1."""

    file: str
    name: str
    first_line: int


class CodeMap:
    """One file of the user's; without its text every answer is what the instruction itself says."""

    def __init__(self, path: str, module: Module | None = None) -> None:
        self.path = path
        self.module = module or _parsed(path)
        self._nodes: dict[Spot, ast.AST | None] = {}

    @cached_property
    def _by_span(self) -> dict[tuple[int, int, int, int], ast.AST]:
        found: dict[tuple[int, int, int, int], ast.AST] = {}
        if self.module is not None:
            for node in (*self.module.nodes(ast.stmt), *self.module.nodes(ast.expr)):
                found[_span(node)] = node  # of those with one span the innermost is last
        return found

    @cached_property
    def _calls_by_end(self) -> dict[tuple[int, int], ast.AST]:
        found: dict[tuple[int, int], ast.AST] = {}
        if self.module is not None:
            for call in self.module.nodes(ast.Call):
                found.setdefault((call.end_lineno or 0, call.end_col_offset or 0), call)
        return found

    @cached_property
    def _statements(self) -> dict[int, ast.stmt]:
        """The statement that a line belongs to; of several in a line the first."""
        found: dict[int, ast.stmt] = {}
        if self.module is not None:
            for statement in self.module.nodes(ast.stmt):
                for line in range(_first_line(statement), _last_own_line(statement) + 1):
                    found[line] = statement  # inner statements come after outer ones
        return found

    def node_of(self, spot: Spot) -> ast.AST | None:
        """The expression or statement that an instruction carries out."""
        if spot not in self._nodes:
            key = (spot.line or 0, spot.column or 0, spot.end_line or 0, spot.end_column or 0)
            node = self._by_span.get(key)
            if spot.operation.startswith("CALL") and not isinstance(node, ast.Call):
                # Of a call of a method Python may give only the last line.
                node = self._calls_by_end.get((key[2], key[3]), node)
            self._nodes[spot] = node
        return self._nodes[spot]

    def statement_of(self, spot: Spot) -> ast.stmt | None:
        """The statement that an instruction belongs to, of compound ones the innermost part."""
        node = self.node_of(spot)
        if node is not None and self.module is not None:
            return self.module.index.statement_of(node)
        return self._statements.get(spot.line or 0)

    def line_of(self, spot: Spot) -> int | None:
        """The first line of the statement; of a definition that of its first statement."""
        statement = self.statement_of(spot)
        while isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            body = [part for part in statement.body if not _is_text(part)]
            statement = (body or statement.body)[0]
        return spot.line if statement is None else statement.lineno

    def text_of(self, line: int | None) -> str | None:
        """The text of a line without its indentation."""
        if self.module is None or line is None or not 0 < line <= len(self.module.lines):
            return None
        return self.module.lines[line - 1].strip()

    def function_of(self, code: Code) -> FunctionAt:
        """The function of a code; that of a comprehension is the one around it."""
        name, last = code.name, code.name.rpartition(".")[2]
        if last not in COMPREHENSIONS:
            return FunctionAt(self.path, name, code.first_line)
        while name.rpartition(".")[2] in COMPREHENSIONS:
            name = name.rpartition(".")[0].removesuffix(".<locals>") or "<module>"
        around = self._function_around(code.first_line)
        return FunctionAt(self.path, name, 1 if around is None else _first_line(around))

    def _function_around(self, line: int) -> FunctionNode | None:
        statement = self._statements.get(line)
        return None if statement is None or self.module is None else self.module.function_of(statement)

    def function_around(self, loop: Loop) -> FunctionAt:
        """The function that a loop stands in, with its qualified name."""
        function = None if self.module is None else self.module.function_of(loop)
        if function is None or self.module is None:
            return FunctionAt(self.path, "<module>", 1)
        names = [function.name]
        for above in self.module.ancestors(function):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
                names += ["<locals>", above.name]
            elif isinstance(above, ast.ClassDef):
                names.append(above.name)
        return FunctionAt(self.path, ".".join(reversed(names)), _first_line(function))

    def loops_around(self, spot: Spot, code: Code) -> Iterator[Loop]:
        """The loops and comprehensions of the same function that repeat an instruction, innermost first."""
        node: ast.AST | None = self.node_of(spot) or self._statements.get(spot.line or 0)
        if node is None or self.module is None:
            return
        inside = code.name.rpartition(".")[2] in COMPREHENSIONS
        turns = spot.operation.startswith(TURNS)
        if isinstance(node, ast.While) or (isinstance(node, Loop) and (turns or inside)):
            yield node
        children = [node]
        for above in self.module.ancestors(node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return
            if isinstance(above, Loop) and _repeats(above, children, turns=turns and len(children) <= 2):
                yield above
            children.insert(0, above)


def _parsed(path: str) -> Module | None:
    try:
        return Module.parse(path, Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InputError):
        return None  # text that was typed in, or is gone: lines are still known


def _span(node: ast.AST) -> tuple[int, int, int, int]:
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return decorators[0].lineno if decorators else statement.lineno


def _last_own_line(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        first: int = body[0].lineno
        return max(statement.lineno, first - 1)
    return statement.end_lineno or statement.lineno


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _repeats(loop: Loop, children: list[ast.AST], *, turns: bool) -> bool:
    """Whether a loop runs what lies in it, its child first, in each round, or asks it for the next element."""
    child = children[0]
    if isinstance(loop, ast.For | ast.AsyncFor):
        return child in loop.body or child is loop.target or (turns and child is loop.iter)
    if isinstance(loop, ast.While):
        return child in loop.body or child is loop.test
    return turns or child is not loop.generators[0] or children[1:2] != [loop.generators[0].iter]


def heading_of(loop: Loop) -> int:
    """The line to which each round returns."""
    first: ast.expr | Loop = loop
    if isinstance(loop, Comprehension):
        first = loop.generators[0].target
    return first.lineno


def over_of(loop: Loop) -> str:
    """What a loop walks over, or the condition of a `while`, as it is written."""
    if isinstance(loop, ast.While):
        return ast.unparse(loop.test)
    return ast.unparse(loop.iter if isinstance(loop, ast.For | ast.AsyncFor) else loop.generators[0].iter)
