"""`pyrometer compare`: two stored measurements side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyrometer.cli.printing import print_document, print_view
from pyrometer.cli.saving import store_option

if TYPE_CHECKING:
    from pyrometer.store.store import Store


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_option
def command(store: Store, *, a: str, b: str, as_json: bool) -> None:
    """Put two stored measurements side by side.

    A and B are ids, beginnings of ids, or `last`. Runs of different machines or settings are refused. The ratio is
    for display: a verdict needs `pyrometer bench A --vs B`, which runs both in turns.
    """
    from pyrometer.report.run_documents import CompareDocument
    from pyrometer.report.run_views import comparison_view
    from pyrometer.store.comparison import compare_runs

    comparison = compare_runs(store.load(a), store.load(b))
    if as_json:
        print_document(CompareDocument(comparison=comparison))
    else:
        print_view(comparison_view(comparison))
