"""`pyrometer prune`: delete old runs from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import print_document, print_view
from pyrometer.cli.saving import store_option

if TYPE_CHECKING:
    from pyrometer.store.store import Store


@click.command()
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N runs.")
@click.option(
    "--older-than", type=DURATION, metavar="AGE", help="Delete only runs of at least this age, such as 30d."
)
@click.option("--dry-run", is_flag=True, help="List what would be deleted without deleting it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_option
def command(
    store: Store, *, keep: int | None, older_than: float | None, dry_run: bool, as_json: bool
) -> None:
    """Delete old runs, and files that an interrupted write left behind.

    Without --keep and --older-than, only such leftovers are deleted.
    """
    from pyrometer.report.run_documents import PruneDocument
    from pyrometer.report.run_views import pruned_view

    pruned = store.prune(keep=keep, older_than_s=older_than, dry_run=dry_run)
    if as_json:
        print_document(PruneDocument(dry_run=dry_run, pruned=pruned))
    else:
        print_view(pruned_view(pruned, dry_run=dry_run))
