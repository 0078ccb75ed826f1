"""One parsed Python file, and what rules ask about its code."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar, overload

from pyrometer.errors import InputError
from pyrometer.source.classes import Classes
from pyrometer.source.flow import Flow
from pyrometer.source.hotness import Heat, Hot
from pyrometer.source.index import FunctionNode, Index, inside_body
from pyrometer.source.knowledge import TORCH_PACKAGES
from pyrometer.source.lines import MARK, span, split_lines, text_between
from pyrometer.source.names import MISSING, Missing, Names
from pyrometer.source.rare import is_rare
from pyrometer.source.regions import Region, Regions
from pyrometer.source.scopes import Scopes
from pyrometer.source.value import Value

A = TypeVar("A", bound=ast.AST)
B = TypeVar("B", bound=ast.AST)
C = TypeVar("C", bound=ast.AST)
D = TypeVar("D", bound=ast.AST)

DEFAULTS: Mapping[str, float] = MappingProxyType({})
"""No limit that the user set."""

__all__ = ["MISSING", "FunctionNode", "Hot", "Missing", "Module", "Region", "Value"]


class Limited(Protocol):
    """What declares thresholds under a code: a rule."""

    @property
    def code(self) -> str:
        """Such as PYR504."""

    def limit(self, name: str, /) -> Threshold:
        """One of its thresholds by name."""


class Threshold(Protocol):
    """A declared number."""

    @property
    def value(self) -> float:
        """What holds unless the user set another."""


class Module:
    """One parsed Python file, and lazy answers about its code.

    `limits`: thresholds that the user set, as `"PYR504.min_vocabulary": 4096`.
    """

    def __init__(
        self, path: str, text: str, tree: ast.Module, limits: Mapping[str, float] = DEFAULTS
    ) -> None:
        self.path = path
        self.text = text
        self.lines = split_lines(text)
        self.tree = tree
        self.limits = limits
        self.index = Index(tree)
        self.scopes = Scopes(tree, self.index)
        self.names = Names(tree, self.index, self.scopes)

    @classmethod
    def parse(cls, path: str, text: str, limits: Mapping[str, float] = DEFAULTS) -> Module:
        r"""Read a file's text.

        Raises:
            InputError: it is not Python of this interpreter's version, or nested too deeply for it.

        >>> Module.parse("a.py", "import torch as t\nt.zeros(3)").imports_torch
        True
        """
        try:
            with warnings.catch_warnings():
                # Odd escapes in strings are the user's business, and no finding of ours.
                warnings.simplefilter("ignore")
                tree = ast.parse(text.removeprefix(MARK), path)
        except SyntaxError as error:
            raise InputError(
                f"{path}:{error.lineno or 1}: not valid Python: {error.msg}; it was not looked at"
            ) from error
        except (RecursionError, MemoryError, ValueError) as error:
            raise InputError(
                f"{path}:1: cannot be parsed: {str(error) or 'nested too deeply'}; it was not looked at"
            ) from error
        return cls(path, text, tree, limits)

    def let_go(self) -> None:
        """Forget everything, after the last question: the tree is freed at once, and need not be searched as garbage."""
        vars(self).clear()

    def limit(self, rule: Limited, name: str) -> float:
        """A threshold of a rule: the user's, or the one it declares.

        Raises:
            KeyError: the rule has no limit of that name.
        """
        return self.limits.get(f"{rule.code}.{name}", rule.limit(name).value)

    @functools.cached_property
    def imports_torch(self) -> bool:
        """Whether any import, wherever it stands, is of torch or of a package that works with its tensors."""
        return any(name.partition(".")[0] in TORCH_PACKAGES for name in self.imported_modules())

    def imported_modules(self) -> Iterator[str]:
        """The modules that the file imports from, dotted."""
        for node in self.nodes(ast.Import, ast.ImportFrom):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif node.level == 0:
                yield node.module or ""

    @functools.cached_property
    def classes(self) -> Classes:
        """What the file's classes are and have."""
        return Classes(self)

    @functools.cached_property
    def flow(self) -> Flow:
        """The values of expressions."""
        return Flow(self)

    @functools.cached_property
    def heat(self) -> Heat:
        """What runs often."""
        return Heat(self)

    @functools.cached_property
    def regions(self) -> Regions:
        """What surrounds code."""
        return Regions(self)

    @overload
    def nodes(self, one: type[A], /) -> Sequence[A]: ...
    @overload
    def nodes(self, one: type[A], two: type[B], /) -> Sequence[A | B]: ...
    @overload
    def nodes(self, one: type[A], two: type[B], three: type[C], /) -> Sequence[A | B | C]: ...
    @overload
    def nodes(
        self, one: type[A], two: type[B], three: type[C], four: type[D], /
    ) -> Sequence[A | B | C | D]: ...
    @overload
    def nodes(self, *types: type[ast.AST]) -> Sequence[ast.AST]: ...
    def nodes(self, *types: type[ast.AST]) -> Sequence[ast.AST]:
        """Every node of these types and their subtypes, in the order of the text."""
        return self.index.nodes(types)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        r"""Calls of functions with these dotted names, imports resolved: "torch.cuda.synchronize", "print".

        >>> module = Module.parse("a.py", "from time import time as now\nnow()")
        >>> [call.lineno for call in module.calls("time.time")]
        [2]
        """
        wanted = frozenset(names)
        lasts = {name.rpartition(".")[2] for name in wanted} | self.names.aliases_of(wanted)
        calls = [call for last in lasts for call in self.index.calls_ending_in(last)]
        if len(lasts) > 1:
            calls.sort(key=lambda call: (call.lineno, call.col_offset))
        return (call for call in calls if self.names.name_of(call.func) in wanted)

    def method_calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of methods with these names on anything: `x.item()`."""
        calls = [
            call
            for name in dict.fromkeys(names)
            for call in self.index.calls_ending_in(name)
            if isinstance(call.func, ast.Attribute)
        ]
        if len(names) > 1:
            calls.sort(key=lambda call: (call.lineno, call.col_offset))
        return iter(calls)

    def name_of(self, expression: ast.expr) -> str | None:
        """The dotted name that an expression means, import aliases resolved; None for anything local."""
        return self.names.name_of(expression)

    def value_of(self, expression: ast.expr) -> Value:
        """What the expression is at that point of the program."""
        return self.flow.value_of(expression)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node right around another."""
        return self.index.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around another, innermost first."""
        return self.index.ancestors(node)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node is or is part of."""
        statement = self.index.statement_of(node)
        if statement is None:
            raise ValueError(f"{type(node).__name__}: not a part of a statement of {self.path}")
        return statement

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function that runs a node; decorators and defaults run outside of theirs."""
        return self.index.function_of(node)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node."""
        return next((above for above in self.ancestors(node) if isinstance(above, ast.ClassDef)), None)

    def hot(self, node: ast.AST) -> Hot | None:
        """Why a node runs once per step, batch or request; None if it does not."""
        return self.heat.hot(node)

    def is_rare(self, node: ast.AST) -> bool:
        """Whether a node runs seldom even within code that runs often."""
        return is_rare(self, node)

    def region(self, node: ast.AST) -> Region:
        """What surrounds a node: compilation, no_grad, autocast, a profiler, a test."""
        return self.regions.region(node)

    def loops_around(self, node: ast.AST) -> list[ast.For | ast.AsyncFor | ast.While]:
        """The loops of the same function that repeat a node, innermost first."""
        loops: list[ast.For | ast.AsyncFor | ast.While] = []
        child = node
        for above in self.ancestors(node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if inside_body(child, above):
                    break
            elif isinstance(above, ast.For | ast.AsyncFor):
                if child is above.target or child in above.body:
                    loops.append(above)
            elif isinstance(above, ast.While) and (child is above.test or child in above.body):
                loops.append(above)
            child = above
        return loops

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
        """First line, column, last line and column of a node; lines from 1, columns in characters from 0."""
        return span(self.lines, node)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return text_between(self.lines, self.span(node))

    def keyword(self, call: ast.Call, name: str) -> ast.expr | None:
        """The value of a keyword argument of a call."""
        return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)

    def literal(self, expression: ast.expr | None) -> object:
        """The constant that an expression is, also through a name that is assigned once; else MISSING."""
        return self.names.literal(expression)

    def assignments(self, name: str, around: ast.AST) -> Sequence[ast.expr]:
        """The expressions that are assigned to a name in the scope that it has at a node."""
        return self.names.assignments(name, around)

    def uses(self, name: str, around: ast.AST) -> Sequence[ast.Name]:
        """The places that read the name that is meant at a node, in the order of the text."""
        return list(self.names.uses(name, around))
