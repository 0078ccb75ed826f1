"""A change of the user's text as whole lines: those that go, and those that come; and names that it may use."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.source.edit import Edit, apply_edits, edit
from pyrometer.source.lines import split_lines, text_between

if TYPE_CHECKING:
    from pyrometer.source.module import Module


class Rewrite(NamedTuple):
    """Lines of a file, and what to write in their place; both without the indentation that all of them share."""

    replaces: str
    text: str


def rewritten(module: Module, edits: Iterable[Edit]) -> Rewrite | None:
    r"""The lines that edits change, before and after; None where they would leave no Python.

    >>> from pyrometer.source.module import Module
    >>> rewritten(Module.parse("a.py", "if x:\n    y = f(a)\n"), [edit(2, 8, 2, 9, "g")])
    Rewrite(replaces='y = f(a)', text='y = g(a)')
    """
    given = list(edits)
    if not given:
        return None
    old = split_lines(module.text)
    try:
        text = apply_edits(module.text, given)
        ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    new = split_lines(text)
    first, last = _whole_statements(module, given)
    after = len(old) - last
    before, now = old[first : len(old) - after], new[first : len(new) - after]
    indent = before[0][: len(before[0]) - len(before[0].lstrip())]
    if any(line.strip() and not line.startswith(indent) for line in [*before, *now]):
        return None  # a string of several lines reaches to the left
    return Rewrite(*("\n".join(line[len(indent) :].rstrip() for line in lines) for lines in (before, now)))


def _whole_statements(module: Module, edits: list[Edit]) -> tuple[int, int]:
    """The range of lines of edits, as far as the statements reach that begin or end in it."""
    first, last = min(change.line for change in edits), max(change.end_line for change in edits)
    for statement in module.nodes(ast.stmt):
        end = statement.end_lineno or statement.lineno
        is_simple = not hasattr(statement, "body")
        if is_simple and statement.lineno <= last and first <= end:
            first, last = min(first, statement.lineno), max(last, end)
    return first - 1, last


def spelled(module: Module, dotted: str) -> str | None:
    """How a function of torch is called by the names that the file imports; None where none of them leads to it.

    A name that the file also gives to something else is not relied on.

    >>> from pyrometer.source.module import Module
    >>> spelled(Module.parse("a.py", "import torch.nn.functional as F"), "torch.nn.functional.gelu")
    'F.gelu'
    """
    roads = [
        name + dotted[len(target) :]
        for name, target in _imported(module)
        if (dotted == target or dotted.startswith(f"{target}.")) and not is_bound_otherwise(module, name)
    ]
    return min(roads, key=lambda road: (road.count("."), len(road)), default=None)


def _imported(module: Module) -> Iterator[tuple[str, str]]:
    """The names that imports at the top of the file bind, with what they stand for."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            for alias in statement.names:
                yield alias.asname or alias.name, f"{statement.module}.{alias.name}"


def is_bound_otherwise(module: Module, name: str) -> bool:
    """Whether a file gives a name that it imports to anything else, in whatever scope."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in module.nodes(ast.Name, ast.arg)
    )


def unused_name(module: Module, *wishes: str) -> str:
    """The first of these names that stands nowhere in the file, or the last with as many underscores as it takes."""
    taken = {node.id for node in module.nodes(ast.Name)} | {node.arg for node in module.nodes(ast.arg)}
    free = next((wish for wish in wishes if wish not in taken), wishes[-1])
    while free in taken:
        free += "_"
    return free


def indentation(module: Module, statement: ast.stmt) -> str | None:
    """What stands before a statement; None where that is not blank, as behind a semicolon."""
    before = module.lines[statement.lineno - 1][: module.span(statement)[1]]
    return None if before.strip() else before


def insert_before(module: Module, statement: ast.stmt, text: str) -> Edit | None:
    """A line of its own above a statement; None where the statement shares its line."""
    indent = indentation(module, statement)
    line = statement.lineno
    return None if indent is None else edit(line, 0, line, 0, f"{indent}{text}\n")


def insert_after(module: Module, statement: ast.stmt, text: str) -> Edit | None:
    """A line of its own below a statement; None where something follows on its last line."""
    indent = indentation(module, statement)
    _, _, line, column = module.span(statement)
    rest = module.lines[line - 1][column:].strip()
    if indent is None or (rest and not rest.startswith("#")):
        return None
    end = len(module.lines[line - 1])
    return edit(line, end, line, end, f"\n{indent}{text}")


def with_keywords(module: Module, call: ast.Call, keywords: dict[str, str]) -> list[Edit]:
    """Edits that give a call these keyword arguments, in the place of those that it has; none where it may pass others."""
    if any(keyword.arg is None for keyword in call.keywords):
        return []
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    edits = []
    for name, value in keywords.items():
        if name in given:
            line, column, end_line, end_column = module.span(given[name])
            edits.append(edit(line, column, end_line, end_column, value))
    missing = ", ".join(f"{name}={value}" for name, value in keywords.items() if name not in given)
    return edits + (add_argument(module, call, missing) if missing else [])


def add_argument(module: Module, call: ast.Call, text: str) -> list[Edit]:
    """Edits that add an argument after the last one of a call; none where a comment stands behind that."""
    _, _, end_line, end_column = module.span(call)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not values:
        return [edit(end_line, end_column - 1, end_line, end_column - 1, text)]
    last = max(values, key=lambda value: (value.end_lineno or 0, value.end_col_offset or 0))
    _, _, line, column = module.span(last)
    rest = text_between(module.lines, (line, column, end_line, end_column - 1))
    if "#" in rest:
        return []
    kept = rest.rstrip()
    line += kept.count("\n")
    column = len(kept.rpartition("\n")[2]) + (0 if "\n" in kept else column)
    begin = module.lines[module.span(last)[0] - 1]
    apart = "\n" in rest[len(kept) :]
    indent = begin[: len(begin) - len(begin.lstrip())]
    comma = "" if kept.endswith(",") else ","
    added = f"{comma}\n{indent}{text}," if apart else f"{comma} {text}"
    return [edit(line, column, line, column, added)]
