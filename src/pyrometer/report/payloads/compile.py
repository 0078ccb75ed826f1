"""What a page draws of: compile."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.report.documents import Document
from pyrometer.report.exhibits import Exhibits
from pyrometer.report.payloads.block import Block


def blocks(document: Document, exhibits: Exhibits) -> Iterator[Block]:
    """Its data blocks."""
    del document, exhibits
    return iter(())
