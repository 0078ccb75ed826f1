"""What a page draws of traces: `trace/<rank>` is the `TraceView` of a rank, for the timeline and the flame graph."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.report.documents import Document
from pyrometer.report.exhibits import Exhibits
from pyrometer.report.payloads.block import Block, block_of


def blocks(document: Document, exhibits: Exhibits) -> Iterator[Block]:
    """A block per rank, in the order of the exhibits; of two views of one rank the first."""
    del document
    seen: set[int] = set()
    for view in exhibits.traces:
        if view.rank not in seen:
            seen.add(view.rank)
            yield block_of(f"trace/{view.rank}", view)
