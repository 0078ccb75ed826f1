"""What a page draws of traces: `trace/<rank>` is the `TraceView` of a rank, for the timeline and the flame graph.

Where two recordings are compared they are `trace/before` and `trace/after`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document, TraceDocument
from pyrometer.report.facts import trace_document
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.difference import compares


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """A block per rank, the one that the answer is about first; of two views of one rank the first. Of a comparison both sides."""
    if compares(document):
        for side, view in zip(("before", "after"), attachments.traces, strict=False):
            yield block_of(f"trace/{side}", view)
        return
    seen: set[int] = set()
    first = leading_rank(document)
    for view in sorted(attachments.traces, key=lambda view: view.rank != first):
        if view.rank not in seen:
            seen.add(view.rank)
            yield block_of(f"trace/{view.rank}", view)


def leading_rank(document: Document) -> int | None:
    """The rank that is shown first; `None` where a document is about no trace alone."""
    if not isinstance(document, TraceDocument):
        return None
    return next((report.rank for report in trace_document.ordered_ranks(document)), None)
