"""Changes to the text of a file, by position."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyrometer.record import Record
from pyrometer.source.lines import LINE_END, MARK

if TYPE_CHECKING:
    from pyrometer.source.module import Module


class Edit(Record, frozen=True, kw_only=True):
    """Text to put in place of a range; lines count from 1, columns in characters from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


def edit(line: int, column: int, end_line: int, end_column: int, text: str) -> Edit:
    """An edit by place: lines from 1, columns in characters from 0."""
    return Edit(line=line, column=column, end_line=end_line, end_column=end_column, text=text)


def replace(module: Module, node: ast.expr | ast.stmt, text: str) -> Edit:
    """Put other text in the place of a node."""
    line, column, end_line, end_column = module.span(node)
    return edit(line, column, end_line, end_column, text)


def delete_statement(module: Module, statement: ast.stmt) -> Edit:
    """Take a statement out: its lines, or `pass` where a block would be left empty.

    A statement that shares its line with others takes only its own text and the semicolon.
    """
    line, column, end_line, end_column = module.span(statement)
    if is_alone(module, statement):
        return edit(line, column, end_line, end_column, "pass")
    before = module.lines[line - 1][:column]
    after = module.lines[end_line - 1][end_column:]
    if after.lstrip().startswith(";"):
        rest = after.lstrip()[1:].lstrip()
        return edit(line, column, end_line, len(module.lines[end_line - 1]) - len(rest), "")
    if before.strip():
        return edit(line, len(before.rstrip().removesuffix(";").rstrip()), end_line, end_column, "")
    if end_line < len(module.lines):
        return edit(line, 0, end_line + 1, 0, "")
    return edit(line, 0, end_line, len(module.lines[end_line - 1]), "")


def is_alone(module: Module, statement: ast.stmt) -> bool:
    """Whether a statement is the only one of its block, so that the block needs something in its place."""
    parent = module.parent(statement)
    if parent is None or isinstance(parent, ast.Module):
        return False
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and statement in block:
            return len(block) == 1
    return False


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    r"""The text after all edits; line endings and a byte order mark stay as they are.

    Raises:
        ValueError: Two edits overlap, or one lies outside of the text.

    >>> apply_edits("a = 1\r\nb = 2\r\n", [edit(2, 4, 2, 5, "3")])
    'a = 1\r\nb = 3\r\n'
    """
    mark = MARK if text.startswith(MARK) else ""
    body = text.removeprefix(MARK)
    ends = list(LINE_END.finditer(body))
    starts = [0, *(end.end() for end in ends)]
    newline = ends[0].group() if ends else "\n"
    spans = [
        (
            offset(starts, len(body), edit.line, edit.column),
            offset(starts, len(body), edit.end_line, edit.end_column),
            edit,
        )
        for edit in dict.fromkeys(edits)
    ]
    spans.sort(key=lambda span: span[:2])  # insertions at one place keep their order
    pieces: list[str] = []
    at = 0
    for begin, end, edit in spans:
        if begin < at or end < begin:
            raise ValueError(
                f"edits overlap at line {edit.line}, column {edit.column}: apply one of them at a time"
            )
        pieces += [body[at:begin], LINE_END.sub(newline, edit.text)]
        at = end
    return mark + "".join(pieces) + body[at:]


def offset(starts: Sequence[int], length: int, line: int, column: int) -> int:
    """The position of a line and column in the text."""
    if not 1 <= line <= len(starts):
        raise ValueError(f"line {line}: the text has {len(starts)} lines")
    return min(starts[line - 1] + column, length)
