"""What goes to stdout: one JSON document, or one view."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pyrometer.record import Record

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 200  # a reader that is a program gets whole lines


def document_json(document: Record | dict[str, Any]) -> bytes:
    """A document as indented JSON in UTF-8."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def print_document(document: Record) -> None:
    """Print a record as JSON."""
    click.echo(document_json(document))


def print_view(*views: RenderableType, stderr: bool = False) -> None:
    """Print what people look at; colours and widths follow the terminal, and `NO_COLOR`."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else _PIPE_WIDTH, highlight=False)
    for view in views:
        console.print(view)
