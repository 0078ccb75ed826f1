"""`pyrometer runs`: what the store holds."""

from __future__ import annotations

import click

from pyrometer.cli.printing import print_document, print_view
from pyrometer.cli.saving import open_store, store_place
from pyrometer.store.reading import read_summaries

KINDS = (
    "audit", "bench", "calibration", "check", "compile", "guard", "guard-past", "guard-proof", "guard-record", "matrix", "memory", "trace",
)  # fmt: skip
"""What verbs store; written out, since their records take long to import."""


@click.command()
@click.option("--kind", type=click.Choice(KINDS), help="List only runs of this kind.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="List at most this many."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_place
def command(store_location: str, *, kind: str | None, limit: int, as_json: bool) -> None:
    """List stored runs, the newest first."""
    runs = read_summaries(store_location, kind=kind, limit=limit)
    if runs is None:
        runs = open_store(store_location).runs(kind=kind, limit=limit)
    if as_json:
        from pyrometer.report.run_documents import RunsDocument

        print_document(RunsDocument(runs=runs))
    else:
        from pyrometer.report.run_views import runs_view

        print_view(runs_view(runs))
