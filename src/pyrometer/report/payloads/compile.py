"""What a page draws of a compilation: breaks beside the source, its cost, its graphs, and what changed."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import CompileDocument, Document, EvidenceDocument
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.compile_breaks import breaks_content
from pyrometer.report.payloads.compile_cost import compile_content
from pyrometer.report.payloads.compile_difference import difference_content
from pyrometer.report.payloads.compile_graphs import graph_blocks
from pyrometer.report.payloads.compile_marks import line_marks
from pyrometer.report.payloads.compile_phases import phases_content
from pyrometer.report.sources import compile_of


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """Its data blocks, in the order in which they stand on the page."""
    report = compile_of(document)
    if report is None:
        return
    findings = document.diagnosis.findings if isinstance(document, EvidenceDocument) else []
    breaks = breaks_content(report, findings, attachments.sources)
    if breaks is not None:
        yield block_of("breaks", breaks)
    phases = phases_content(report)
    if phases is not None:
        yield block_of("phases", phases)
    cost = compile_content(report)
    if cost is not None:
        yield block_of("compile", cost)
    yield from graph_blocks(report, line_marks(report, findings))
    if isinstance(document, CompileDocument) and document.diff is not None:
        yield block_of("graphdiff", difference_content(report, document.diff, attachments.graphs_before))
