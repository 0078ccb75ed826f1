"""A suite's history in a store as a document."""

from __future__ import annotations

from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.guard.history.stored import read_history, read_jobs, read_past_points
from pyrometer.report.history_documents import GuardHistoryDocument
from pyrometer.store.store import Store


def history_document(store: Store, root: Path | None = None) -> GuardHistoryDocument:
    """Read the history.

    Args:
        store: where its jobs are.
        root: of the repository, where it is at hand.

    Raises:
        InputError: no commit is recorded.
        StoreError: the store cannot be read.
    """
    kept, past = read_jobs(store), read_past_points(store)
    if not kept.records and not past:
        raise InputError(f"{store.name}: no commit is recorded; pyrometer guard record makes the first one")
    history = read_history(store, root, kept)
    return GuardHistoryDocument(
        target=history.last_sha or "",
        environment=kept.environment,
        history=history,
        num_elsewhere=kept.num_elsewhere,
        past=past,
    )
