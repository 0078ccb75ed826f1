"""What a page draws of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments, PastRun
from pyrometer.report.charts.scale import fit
from pyrometer.report.documents import BenchDocument, CheckDocument, Document
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.measurement import AxisView, axis_view

FEWEST = 2
LOG_ABOVE = 6.0


class HistoryView(Record, frozen=True, kw_only=True):
    """A target's medians from run to run, ready to be drawn."""

    runs: Annotated[list[PastRun], doc("the oldest first")]
    own: Annotated[int | None, doc("place of the page's own run; null when it is not among them")]
    deadline_s: Seconds | None
    axis: AxisView


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """One block, where the target was measured before."""
    if len(attachments.history) >= FEWEST:
        yield block_of("history", history_view(attachments.history, document))


def history_view(runs: Sequence[PastRun], document: Document) -> HistoryView:
    """Runs as a series.

    Args:
        runs: at least one, the oldest first.
        document: of the page on which they stand.
    """
    measured = document.evidence.measurement if isinstance(document, (BenchDocument, CheckDocument)) else None
    due = measured.deadline_s if measured is not None else None
    values = [end for run in runs for end in (run.median_s, run.low_s, run.high_s) if end is not None]
    if due is not None and due < 2 * max(values):
        values.append(due)
    own = [place for place, run in enumerate(runs) if run.run_id == document.run_id]
    return HistoryView(
        runs=list(runs),
        own=own[-1] if own else None,
        deadline_s=due,
        axis=axis_view(fit(values, pad=0.1, log_above=LOG_ABOVE)),
    )
