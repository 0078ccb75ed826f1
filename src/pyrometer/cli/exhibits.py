"""How verbs keep the exhibits of a result, and write its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyrometer.errors import StoreError

if TYPE_CHECKING:
    from pyrometer.report.documents import Document
    from pyrometer.report.exhibits import Exhibits


def artifacts_of(exhibits: Exhibits) -> dict[str, bytes | Path]:
    """The files to keep with a run; none where nothing would be drawn."""
    from pyrometer.report.exhibits import ARTIFACT, Exhibits, pack

    return {} if exhibits == Exhibits() else {ARTIFACT: pack(exhibits)}


def write_page(document: Document, path: Path, exhibits: Exhibits, *, store_location: str | None) -> None:
    """Write the page of a result; where it was stored, with how the target did before.

    Raises:
        InputError: the place cannot be written.
    """
    from pyrometer.report.html import write_report

    if store_location is not None and document.run_id is not None:
        exhibits = _with_history(exhibits, store_location, document.run_id)
    write_report(document, path, exhibits)


def _with_history(exhibits: Exhibits, store_location: str, run_id: str) -> Exhibits:
    from pyrometer.report.exhibiting import with_history
    from pyrometer.store.store import Store

    try:
        store = Store.open(store_location, create=False)
        return with_history(exhibits, store, store.load(run_id))
    except StoreError:
        return exhibits  # it was stored a moment ago: a page without its history beats none
