"""What a rule found in source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

import msgspec

from pyrometer.advice import Confidence, FixClass
from pyrometer.record import Record, doc
from pyrometer.source.edit import Edit
from pyrometer.source.lines import column_of


class Fix(Record, frozen=True, kw_only=True):
    """Edits that go together."""

    fix_class: FixClass
    title: Annotated[str, doc("what it does, such as: Use zero_grad()")]
    edits: list[Edit]


class Match(Record, frozen=True, kw_only=True):
    """One place in a file that a rule speaks about; the code and the path are added by whoever runs the rule."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    advice: str = ""
    fix: Fix | None = None
    confidence: Confidence = "high"
    hot: Annotated[str | None, doc("why the place is hot, where that matters")] = None


Matches: TypeAlias = Iterator[Match]
"""What a check of source text yields."""


def match(
    node: ast.expr | ast.stmt,
    message: str,
    *,
    advice: str = "",
    fix: Fix | None = None,
    confidence: Confidence = "high",
    hot: str | None = None,
) -> Match:
    """A match that covers a node of the syntax tree.

    >>> match(ast.parse("x = y.item()").body[0], "reads a tensor").line
    1
    """
    return Match(
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno or node.lineno,
        end_column=node.end_col_offset or node.col_offset,
        message=message,
        advice=advice,
        fix=fix,
        confidence=confidence,
        hot=hot,
    )


def in_characters(found: Match, lines: Sequence[str]) -> Match:
    """The same match with columns in characters: the syntax tree counts bytes of UTF-8.

    >>> x = match(ast.parse("'é' + x.item()").body[0].value.right, "reads a tensor")
    >>> x.column, in_characters(x, ["'é' + x.item()"]).column
    (7, 6)
    """
    first, last = lines[found.line - 1], lines[found.end_line - 1]
    if first.isascii() and last.isascii():
        return found
    return msgspec.structs.replace(
        found, column=column_of(first, found.column), end_column=column_of(last, found.end_column)
    )
