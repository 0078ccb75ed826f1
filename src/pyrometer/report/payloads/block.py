"""A data block of a page: JSON under a name; large ones travel gzipped and in base64."""

from __future__ import annotations

import base64
import gzip
from typing import NamedTuple

from markupsafe import Markup, escape

from pyrometer.record import Record, to_json
from pyrometer.report.visible import visible_json

PLAIN_BYTES = 4096
"""Up to this size a block is left readable."""

READABLE_BYTES = 65_536
"""Up to this size the document of a page is left readable, for scripts that look into it."""


class Block(NamedTuple):
    """JSON that widgets read by name."""

    name: str
    content: bytes


def block_of(name: str, content: Record) -> Block:
    """A record as a block."""
    return Block(name, visible_json(to_json(content)))


def element(block: Block) -> Markup:
    """The `<script>` element that carries a block; the same block gives the same bytes."""
    return _carried(f'data-block="{escape(block.name)}"', block.content, PLAIN_BYTES)


def readable_element(block: Block) -> Markup:
    """The element of a block that the script must read at once, and so is not packed."""
    return _carried(f'data-block="{escape(block.name)}"', block.content, len(block.content))


def document_element(kind: str, document: Record) -> Markup:
    """The `<script>` element that carries the document of a page, which can be turned back into it."""
    content = b'{"kind":"%s","document":%s}' % (kind.encode(), to_json(document))
    return _carried('id="pyrometer-data"', content, READABLE_BYTES)


def _carried(attribute: str, content: bytes, readable: int) -> Markup:
    head = f'<script type="application/json" {attribute}'
    if len(content) <= readable:
        return Markup(f"{head}>{embed(content)}</script>")  # noqa: S704 - escaped by embed
    packed = base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()
    return Markup(f'{head} data-encoding="gzip">{packed}</script>')  # noqa: S704 - base64


def embed(raw: bytes) -> Markup:
    r"""JSON as it may stand inside a `<script>` element: nothing in it can end the element or start markup.

    >>> embed(b'"</script>&"')
    Markup('"\\u003c/script\\u003e\\u0026"')
    """
    text = raw.decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped above
