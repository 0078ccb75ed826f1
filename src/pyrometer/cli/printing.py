"""What goes to stdout: one JSON document, or one view."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pyrometer.record import Record, to_json

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 200  # a reader that is a program gets whole lines


def print_document(document: Record) -> None:
    """Print a record as JSON."""
    click.echo(to_json(document, indent=2))


def print_view(*views: RenderableType) -> None:
    """Print what people look at; colours and widths follow the terminal, and `NO_COLOR`."""
    from rich.console import Console

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
    for view in views:
        console.print(view)
