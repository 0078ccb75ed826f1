"""Carrying out a rewrite: in source text, or as a setting that holds for a while."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import Any

from pyrometer.compiler.breaks.record import Rewrite
from pyrometer.compiler.private import dynamo_config
from pyrometer.errors import InputError

CONFIG = "torch._dynamo.config."
"""What every setting begins with."""


def apply_rewrite(source: str, rewrite: Rewrite, line: int) -> str:
    r"""Replace the rewrite's `before` by its `after`, with the indentation that is there.

    Of several places that read like `before`, the one that holds the line is taken, else the nearest.

    Args:
        source: the whole file.
        rewrite: with a `before`.
        line: the break's, counted from 1.

    Raises:
        InputError: the rewrite replaces no text, or its `before` is not in the source.

    >>> double = Rewrite(title="", why="", before="y = x", after="y = 2 * x")
    >>> print(apply_rewrite("def f(x):\n    y = x\n    return y", double, 2))
    def f(x):
        y = 2 * x
        return y
    """
    if not rewrite.before:
        raise InputError(
            f"rewrite {rewrite.title!r} replaces no text; run its setting instead: {rewrite.setting!r}"
        )
    lines, wanted = source.split("\n"), rewrite.before.split("\n")
    places = [start for start in range(len(lines)) if _stands_at(lines, start, wanted)]
    if not places:
        raise InputError(
            f"line {line}: the source does not hold {rewrite.before!r}; it changed since the break was recorded"
        )
    start = min(places, key=lambda place: _distance(place, len(wanted), line - 1))
    indent = _indent(lines[start])
    new = [indent + text if text.strip() else "" for text in rewrite.after.split("\n")]
    return "\n".join([*lines[:start], *new, *lines[start + len(wanted) :]])


@contextlib.contextmanager
def in_force(rewrite: Rewrite) -> Iterator[None]:
    """Hold the rewrite's setting for the length of a block; torch's settings are as before at the end.

    A setting reaches functions that are compiled while it holds, not those that already were.

    Raises:
        InputError: the rewrite has no setting, or one of a form that is not known, or this torch lacks it.

    >>> with in_force(Rewrite(title="", why="", setting="torch._dynamo.config.capture_scalar_outputs = True")):
    ...     dynamo_config.value("capture_scalar_outputs")
    True
    """
    name, content = read_setting(rewrite.setting)
    with dynamo_config.set_to(name, content) if name else contextlib.nullcontext():
        yield


def read_setting(text: str) -> tuple[str, Any]:
    """Name and content of a setting: `torch._dynamo.config.NAME = LITERAL`, or `….NAME.add(FUNCTION)`.

    Of an `add` the content is the set as it will be.

    Raises:
        InputError: it is of another form, or names what this torch does not have.

    >>> read_setting("torch._dynamo.config.allow_rnn = True")
    ('allow_rnn', True)
    """
    name, setting = "", ""
    content: Any = None
    try:
        statement = ast.parse(text).body[0]
    except (SyntaxError, IndexError):
        statement = ast.Pass()
    match statement:
        case ast.Assign(targets=[ast.Attribute(attr=name) as target], value=ast.Constant(value=literal)):
            setting, content = ast.unparse(target), literal
        case ast.Expr(
            ast.Call(ast.Attribute(value=ast.Attribute(attr=name) as target, attr="add"), [function])
        ):
            setting = ast.unparse(target)
            content = {*dynamo_config.value(name), dynamo_config.function(ast.unparse(function))}
    if setting != CONFIG + name:
        raise InputError(
            f"setting {text!r}: legal are `{CONFIG}NAME = LITERAL` and `{CONFIG}NAME.add(FUNCTION)`"
        )
    return name, content


def _stands_at(lines: list[str], start: int, wanted: list[str]) -> bool:
    if start + len(wanted) > len(lines):
        return False
    indent = _indent(lines[start])
    return all(
        have == indent + want or not (have.strip() or want.strip())
        for have, want in zip(lines[start : start + len(wanted)], wanted, strict=True)
    )


def _distance(start: int, length: int, line: int) -> int:
    return max(start - line, line - (start + length - 1), 0)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
