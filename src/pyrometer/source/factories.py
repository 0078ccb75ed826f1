"""Which names of a file return something to measure, and whether the file does anything when it runs: from its text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

SETTING_UP = frozenset({"torch", "numpy", "np", "random", "os", "sys", "warnings", "logging"})
"""Modules whose calls at the top of a file set something and run nothing."""

WORKLOADS = frozenset({"Inference", "Training", "Call"})
_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)


def read_tree(path: Path) -> ast.Module | None:
    """The syntax tree of a file; `None` where it cannot be read as Python, which whoever runs it tells better."""
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def factories(tree: ast.Module) -> list[str]:
    r"""Functions without needed arguments that return a value, classes with `example_inputs`, workloads; those that surely are one first.

    >>> factories(ast.parse("def work():\n    return net, batch\n\ndef main():\n    net(batch)\n"))
    ['work']
    """
    ranked = sorted(tree.body, key=lambda statement: not _is_sure(statement))
    return [name for statement in ranked for name in _offered(statement) if not name.startswith("_")]


def runs_something(tree: ast.Module) -> bool:
    r"""Whether the file is a program: it does more than import, define and set.

    >>> runs_something(ast.parse("import torch\ntorch.manual_seed(0)\n\ndef work(): ...\n"))
    False
    >>> runs_something(ast.parse("def main(): ...\n\nmain()\n"))
    True
    """
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return any(_runs(statement, functions) for statement in tree.body)


def _offered(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef):
        return [statement.name] if not _needs(statement.args) and _returns(statement) else []
    if isinstance(statement, ast.ClassDef):
        return [statement.name] if _is_example(statement) else []
    if isinstance(statement, ast.Assign) and _called(statement.value) in WORKLOADS:
        return [to.id for to in statement.targets if isinstance(to, ast.Name)]
    return []


def _needs(args: ast.arguments) -> int:
    """How many arguments must be passed."""
    positional = len(args.posonlyargs) + len(args.args) - len(args.defaults)
    return positional + args.kw_defaults.count(None)


def _returns(function: ast.FunctionDef) -> bool:
    """Whether it returns what could be a workload: a value that is made, no constant, and nothing that is yielded."""
    own = list(_own(function.body))
    values = [node.value for node in own if isinstance(node, ast.Return) and node.value is not None]
    yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own)
    return not yields and any(not isinstance(value, (ast.Constant, ast.JoinedStr)) for value in values)


def _is_sure(statement: ast.stmt) -> bool:
    """Whether it returns a pair or makes a workload, as written; also true of what is no factory for other reasons."""
    own = _own(statement.body) if isinstance(statement, ast.FunctionDef) else [statement]
    values = [node.value for node in own if isinstance(node, (ast.Return, ast.Assign))]
    return any(
        (isinstance(value, ast.Tuple) and len(value.elts) == 2) or _called(value) in WORKLOADS
        for value in values
    )


def _called(value: ast.expr | None) -> str:
    """The last name of what is called; empty where nothing is."""
    if not isinstance(value, ast.Call):
        return ""
    return value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")


def _own(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Everything in these statements, but for the functions and classes in them."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def _is_example(defined: ast.ClassDef) -> bool:
    functions = {node.name: node for node in defined.body if isinstance(node, ast.FunctionDef)}
    made = functions.get("__init__")
    return "example_inputs" in functions and (made is None or _needs(made.args) <= 1)


def _runs(statement: ast.stmt, functions: set[str]) -> bool:
    if isinstance(statement, _DEFINING):
        return False
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        called = [node.func for node in _own([statement]) if isinstance(node, ast.Call)]
        return any(isinstance(name, ast.Name) and name.id in functions for name in called)
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant) and not _sets(statement.value)
    if isinstance(statement, ast.Try):
        handlers = [handled for handler in statement.handlers for handled in handler.body]
        inner = [*statement.body, *handlers, *statement.orelse, *statement.finalbody]
        return any(_runs(each, functions) for each in inner)
    if isinstance(statement, ast.If):
        names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
        return "__name__" in names or any(
            _runs(each, functions) for each in statement.body + statement.orelse
        )
    return True


def _sets(value: ast.expr) -> bool:
    root = value.func if isinstance(value, ast.Call) else value
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(value, ast.Call) and isinstance(root, ast.Name) and root.id in SETTING_UP
