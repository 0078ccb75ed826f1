"""What a page draws of traces: `trace/<rank>` is the `TraceView` of a rank, for the timeline and the flame graph.

Where two recordings are compared they are `trace/before` and `trace/after`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.difference import compares


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """A block per rank, in the order of the attachments; of two views of one rank the first. Of a comparison both sides."""
    if compares(document):
        for side, view in zip(("before", "after"), attachments.traces, strict=False):
            yield block_of(f"trace/{side}", view)
        return
    seen: set[int] = set()
    for view in attachments.traces:
        if view.rank not in seen:
            seen.add(view.rank)
            yield block_of(f"trace/{view.rank}", view)
