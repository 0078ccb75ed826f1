"""`pyrometer show`: look at a stored run again, or at a rollout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyrometer.cli.export import to_json, to_markdown
from pyrometer.cli.pages import page_option, stored_page
from pyrometer.cli.printing import SHORT_WIDTH, WHOLE_WIDTH, full_option, print_view
from pyrometer.cli.saving import open_store, store_place
from pyrometer.errors import InputError, UsageError
from pyrometer.garbage import uncollected
from pyrometer.store.reading import read_run

if TYPE_CHECKING:
    from pyrometer.store.store import Store


@click.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print the document that the verb printed with --json.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@full_option
@page_option
@store_place
def command(
    store_location: str, *, run: str, as_json: bool, markdown: bool, full: bool, page: Path | None
) -> None:
    """Print a stored run again, as its verb did.

    RUN is an id, a prefix of one, or `last`; or the name of a rollout, which is judged by what was counted until now.
    """
    if as_json + markdown + (page is not None) > 1:
        raise UsageError("--json, --markdown and --html exclude each other; give one")
    found = read_run(store_location, run)
    if found is None:
        store = open_store(store_location)
        try:
            found = store.load(run)
        except InputError:
            if not _shows_rollout(store, run, as_json=as_json, markdown=markdown, page=page):
                raise
            return
    if as_json:
        click.echo(to_json(found))
    elif markdown:
        click.echo(to_markdown(found))
    elif page is not None:
        from pyrometer.report.html import save_page

        save_page(stored_page(open_store(store_location), found), page)
    else:
        with uncollected():
            from pyrometer.report.answer.lines import Screen
            from pyrometer.report.run_views import provenance_view
            from pyrometer.report.terminal import render_document

        print_view(provenance_view(found, found.command))
        shown = render_document(found.kind, found.document, brief=not full)
        print_view(shown, width=SHORT_WIDTH if isinstance(shown, Screen) else WHOLE_WIDTH)


def _shows_rollout(store: Store, name: str, *, as_json: bool, markdown: bool, page: Path | None) -> bool:
    """Print the rollout of this name; False where there is none."""
    from pyrometer.cli.rolling import print_rollout, rollout_document
    from pyrometer.rollout.ledger import StoredLedger

    ledger = StoredLedger(store)
    if ledger.read(name) is None:
        return False
    if markdown:
        from pyrometer.record import to_dict
        from pyrometer.redaction import redacted
        from pyrometer.report.markdown import render_document

        click.echo(render_document("rollout", to_dict(redacted(rollout_document(ledger, name)))))
    else:
        print_rollout(ledger, name, as_json=as_json, full=True, page=page)
    return True
