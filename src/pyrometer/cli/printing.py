"""What goes to stdout: one JSON document, or one view."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pyrometer.record import Record
from pyrometer.redaction import redacted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pyrometer.report.documents import Document

READABLE_BYTES = 256 * 1024
"""Longer documents are for programs alone: spaces would double them."""
_PIPE_WIDTH = 200  # a reader that is a program gets whole lines


def document_json(document: Record | dict[str, Any]) -> bytes:
    """A document as JSON in UTF-8, without secrets, indented unless it is long; what of a file's name is no UTF-8, is replaced."""
    document = redacted(document)
    try:
        raw = msgspec.json.encode(document)
    except UnicodeEncodeError:  # Python keeps the odd bytes of a name as lone surrogates
        text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False)
        raw = text.encode("utf-8", "replace")
    return msgspec.json.format(raw, indent=2) if len(raw) <= READABLE_BYTES else raw


def print_document(document: Record) -> None:
    """Print a record as JSON."""
    click.echo(document_json(document))


def print_result(document: Document, *, as_json: bool, stderr: bool = False, full: bool = False) -> None:
    """Print the result of a verb: as one JSON document, or as people look at it, which a script keeps off its stdout.

    The short answer, unless every chapter is asked for.
    """
    if as_json:
        print_document(document)
        return
    from pyrometer.report.terminal import view

    print_view(view(redacted(document), brief=not full), stderr=stderr)


def print_view(*views: RenderableType, stderr: bool = False) -> None:
    """Print what people look at; colours and widths follow the terminal, `NO_COLOR` and `COLUMNS`."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream is None:  # closed by the caller (`>&-`), who wants only the exit code
        return
    wide = stream.isatty() or "COLUMNS" in os.environ
    console = Console(file=stream, width=None if wide else _PIPE_WIDTH, highlight=False)
    with console.capture() as captured:
        for view in views:
            console.print(view)
    # Tables pad their last column; in a log or a file that is only noise.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()), file=stream, color=True)
