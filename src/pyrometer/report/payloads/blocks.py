"""All blocks of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document
from pyrometer.report.payloads import compile as of_compile
from pyrometer.report.payloads import difference as of_difference
from pyrometer.report.payloads import findings as of_findings
from pyrometer.report.payloads import history as of_history
from pyrometer.report.payloads import idle as of_idle
from pyrometer.report.payloads import loading as of_loading
from pyrometer.report.payloads import measurement as of_measurement
from pyrometer.report.payloads import memory as of_memory
from pyrometer.report.payloads import operators as of_operators
from pyrometer.report.payloads import roofline as of_roofline
from pyrometer.report.payloads import trace as of_trace
from pyrometer.report.payloads import verdict as of_verdict
from pyrometer.report.payloads.block import Block

AREAS: tuple[Callable[[Document, Attachments], Iterable[Block]], ...] = (
    of_findings.blocks,
    of_measurement.blocks,
    of_verdict.blocks,
    of_roofline.blocks,
    of_trace.blocks,
    of_operators.blocks,
    of_idle.blocks,
    of_difference.blocks,
    of_compile.blocks,
    of_memory.blocks,
    of_loading.blocks,
    of_history.blocks,
)


def blocks_of(document: Document, attachments: Attachments) -> Iterator[Block]:
    """What widgets of the document's page may draw; an area without data gives none."""
    for area in AREAS:
        yield from area(document, attachments)
