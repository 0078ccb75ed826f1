"""What goes to stdout: one JSON document, or one view."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pyrometer.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import RenderableType

    from pyrometer.report.documents import Document

READABLE_BYTES = 256 * 1024
"""Longer documents are for programs alone: spaces would double them."""
WHOLE_WIDTH = 200
"""Cells of a line where no terminal says otherwise: a reader that is a program gets whole lines."""
SHORT_WIDTH = 80
"""The same of a short answer, which is made for this."""


def document_json(document: Record | dict[str, Any]) -> bytes:
    """A document as JSON in UTF-8, without secrets, indented unless it is long; what of a file's name is no UTF-8, is replaced."""
    from pyrometer.redaction import redacted  # its patterns take longer to compile than runs to list

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


def full_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--full`; the verb hands it to `print_result`."""
    return click.option("--full", is_flag=True, help="Print every chapter, not only the short answer.")(verb)


def print_result(
    document: Document,
    *,
    as_json: bool,
    stderr: bool = False,
    full: bool = False,
    page: Path | None = None,
) -> None:
    """Print the result of a verb: as one JSON document, or as people look at it, which a script keeps off its stdout.

    The short answer, unless every chapter is asked for; `page` is where the page was written.
    """
    if as_json:
        print_document(document)
        return
    from pyrometer.redaction import redacted
    from pyrometer.report.terminal import view

    shown = view(redacted(document), brief=not full, page=None if page is None else str(page))
    print_view(shown, stderr=stderr, width=WHOLE_WIDTH if full else SHORT_WIDTH)


def print_view(*views: RenderableType, stderr: bool = False, width: int = WHOLE_WIDTH) -> None:
    """Print what people look at; colours and widths follow the terminal, `NO_COLOR` and `COLUMNS`."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream is None:  # closed by the caller (`>&-`), who wants only the exit code
        return
    wide = stream.isatty() or "COLUMNS" in os.environ
    console = Console(file=stream, width=None if wide else width, highlight=False)
    with console.capture() as captured:
        for view in views:
            console.print(view)
    # Tables pad their last column; in a log or a file that is only noise.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()), file=stream, color=True)
