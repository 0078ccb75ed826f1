"""Gathers the attachments of a document: from traces at hand, from the user's sources, from what a store holds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pyrometer.errors import InputError, StoreError
from pyrometer.hardware.peaks import Peaks
from pyrometer.report.attachments import ARTIFACT, EARLIER_ARTIFACT, MOST_RANKS, Attachments, unpack
from pyrometer.report.documents import Document
from pyrometer.report.history import past_runs
from pyrometer.report.sources import read_sources
from pyrometer.store.run import Run, RunSummary
from pyrometer.store.store import Store
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.tables import tables_of
from pyrometer.trace.view.view import view_trace

MOST_SLICES = 200_000
"""Slices that a page draws, over all of its ranks."""

FEWEST_SLICES = 20_000
MOST_PAST = 50
"""Earlier runs that a history shows."""


def draw(ranks: Sequence[RankTrace], peaks: Peaks | None = None) -> Attachments:
    """The traces of a document, of which the first few ranks are drawn.

    Args:
        ranks: in the order of the document; the one that is shown first, before the others.
        peaks: of the machine that they were taken on, where they were measured.
    """
    drawn = ranks[:MOST_RANKS]
    most = max(FEWEST_SLICES, MOST_SLICES // max(len(drawn), 1))
    return Attachments(
        traces=[view_trace(rank, max_slices=most) for rank in drawn],
        tables=[tables_of(rank, peaks=peaks) for rank in drawn],
    )


def with_sources(attachments: Attachments, document: Document) -> Attachments:
    """Together with the user's lines that the document speaks of."""
    return msgspec.structs.replace(attachments, sources=read_sources(document))


def with_history(attachments: Attachments, store: Store, run: RunSummary) -> Attachments:
    """Together with how the target did in earlier runs."""
    return msgspec.structs.replace(attachments, history=past_runs(earlier_runs(store, run)))


def stored_attachments(store: Store, run: Run) -> Attachments:
    """The attachments that were kept with a run, and how the target did before it.

    A page without its drawings beats none: where the file is gone or damaged, the attachments say so and are empty.

    Raises:
        StoreError: the store cannot be read.
    """
    return with_history(_kept(store, run), store, run)


def _kept(store: Store, run: Run) -> Attachments:
    names = {artifact.name for artifact in run.artifacts} & {ARTIFACT, EARLIER_ARTIFACT}
    if not names:
        return Attachments()
    try:
        return unpack(store.read_file(run, names.pop()))
    except (InputError, OSError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return Attachments(missing=f"Timelines and other drawings of this run are missing: {why}.")


def earlier_runs(store: Store, run: RunSummary) -> list[Run]:
    """Runs of the same kind and target up to this one, the oldest first."""
    alike = (
        summary for summary in store.runs(kind=run.kind, name=run.target) if summary.target == run.target
    )
    ids = [summary.id for summary in alike if summary.number <= run.number and summary.median_s is not None]
    loaded = (_loaded(store, run_id) for run_id in reversed(ids[:MOST_PAST]))
    return [one for one in loaded if one is not None]


def _loaded(store: Store, run_id: str) -> Run | None:
    try:
        return store.load(run_id)
    except (InputError, StoreError):
        return None  # damaged, or pruned meanwhile: a history goes on without it
