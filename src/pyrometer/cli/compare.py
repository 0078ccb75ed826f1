"""`pyrometer compare`: two stored measurements side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.printing import print_document, print_view
from pyrometer.cli.saving import store_option

if TYPE_CHECKING:
    from pyrometer.store.store import Store


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@page_option
@store_option
def command(store: Store, *, a: str, b: str, as_json: bool, page: Path | None) -> None:
    """Show two stored measurements side by side.

    A and B are ids, prefixes of ids, or `last`. Runs from different machines or settings are refused. The ratio is for
    display only: for a verdict use `pyrometer bench A --vs B`, which runs both in turn.
    """
    from pyrometer.report.comparing import compare_stored
    from pyrometer.report.terminal import view

    document, attachments = compare_stored(store, store.load(a), store.load(b))
    write_page(document, page, attachments, store_location=None)
    if as_json:
        print_document(document)
    else:
        print_view(view(document))
