"""A data block of a page: JSON under a name; large ones travel gzipped and in base64."""

from __future__ import annotations

import base64
import gzip
from typing import NamedTuple

from markupsafe import Markup, escape

from pyrometer.record import Record, to_json

PLAIN_BYTES = 4096
"""Up to this size a block is left readable."""


class Block(NamedTuple):
    """JSON that widgets read by name."""

    name: str
    content: bytes


def block_of(name: str, content: Record) -> Block:
    """A record as a block."""
    return Block(name, to_json(content))


def element(block: Block) -> Markup:
    """The `<script>` element that carries a block; the same block gives the same bytes."""
    head = f'<script type="application/json" data-block="{escape(block.name)}"'
    if len(block.content) <= PLAIN_BYTES:
        return Markup(f"{head}>{embed(block.content)}</script>")  # noqa: S704 - escaped by embed
    packed = base64.b64encode(gzip.compress(block.content, compresslevel=9, mtime=0)).decode()
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
