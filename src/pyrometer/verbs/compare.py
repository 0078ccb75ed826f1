"""`pm.compare_runs`: two stored runs side by side."""

from __future__ import annotations

from pyrometer.report.comparing import compare_stored
from pyrometer.report.history_documents import CompareDocument
from pyrometer.store.store import Store
from pyrometer.verbs.documents import StoreChoice, location_of


def compare_runs(a: str, b: str, *, store: StoreChoice = True) -> CompareDocument:
    """Show two stored runs side by side, as `pyrometer compare` does; two searches of `tune` lever by lever.

    `print` shows the short answer; `recipes` holds the two recipes of searches. For a verdict on which of two programs is faster
    use `compare`, which runs both in turn.

    Args:
        a: id of a run, its beginning, or `last`.
        b: the same.
        store: folder of the store; by default that of the settings, `.pyrometer`.

    Raises:
        InputError: there is no such store or run, or one of them holds no measurement.
        IncomparableError: they are of different machines, settings or models; names what differs.
    """
    opened = Store.open(location_of(store or True) or "", create=False)
    return compare_stored(opened, opened.load(a), opened.load(b))[0]
