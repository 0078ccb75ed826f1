"""The lines of a file as Python counts them, and columns in characters."""

from __future__ import annotations

import ast
import re

LINE_END = re.compile(r"\r\n|\n|\r")
MARK = "\ufeff"
"""The byte order mark that some editors put at the beginning."""


def split_lines(text: str) -> list[str]:
    r"""The lines without their ends; form feeds and the separators of Unicode end no line of Python.

    >>> split_lines("a\r\nb\x0cc\n")
    ['a', 'b\x0cc', '']
    """
    return LINE_END.split(text.removeprefix(MARK))


def column_of(line: str, byte_offset: int) -> int:
    """The column in characters of an offset in UTF-8 bytes, which is what the parser counts.

    >>> column_of("é = x", 5)
    4
    """
    if line.isascii():
        return byte_offset
    return len(line.encode()[:byte_offset].decode(errors="ignore"))


def span(lines: list[str], node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    """First line, column, last line and column of a node, decorators included."""
    first_line, first_byte = node.lineno, node.col_offset
    decorators = getattr(node, "decorator_list", None)
    if decorators:
        first_line = decorators[0].lineno
        first_byte = len(lines[first_line - 1][: lines[first_line - 1].index("@")].encode())
    end_line = node.end_lineno or first_line
    end_byte = node.end_col_offset or 0
    return (
        first_line,
        column_of(lines[first_line - 1], first_byte),
        end_line,
        column_of(lines[end_line - 1], end_byte),
    )


def text_between(lines: list[str], place: tuple[int, int, int, int]) -> str:
    """The text of a span, its lines joined by newlines."""
    line, column, end_line, end_column = place
    if line == end_line:
        return lines[line - 1][column:end_column]
    return "\n".join(
        [lines[line - 1][column:], *lines[line : end_line - 1], lines[end_line - 1][:end_column]]
    )
