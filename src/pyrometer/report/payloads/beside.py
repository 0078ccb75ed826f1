"""What belongs to the script but travels beside it as data, so that a page carries no more of it than it needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec
from markupsafe import Markup

from pyrometer.report.chinese import sayings, texts_in
from pyrometer.report.inline import asset
from pyrometer.report.payloads.block import Block, element, readable_element

NO_SENTENCES = ("trace/", "graphs", "phases/", "language/", "worker/")
"""Beginnings of the names of blocks whose texts are names out of the program."""

ARRANGED = ("graphs",)
"""Areas of blocks whose widgets arrange boxes in a worker."""


def beside_script(blocks: Iterable[Block]) -> list[Markup]:
    """What the script of a page with these blocks may ask for: its texts, and the worker that arranges graphs."""
    arranged = any(block.name.partition("/")[0] in ARRANGED for block in blocks)
    return [texts(), layout_worker()] if arranged else [texts()]


@cache
def texts() -> Markup:
    """The texts of the interface in English, which the script reads as it starts, and in the same order in Chinese.

    Raises:
        InputError: a file is missing from this installation.
    """
    english = readable_element(Block("language/en", asset("english.json").encode()))
    return english + Markup("\n") + element(Block("language/zh", asset("chinese.json").encode()))


def spoken(page: str, blocks: Iterable[Block]) -> Markup:
    """What of a page is known in Chinese beyond the words of the interface: sentences of findings, facts and drawings."""
    body = page.partition("<body>")[2]
    data = (msgspec.json.decode(block.content) for block in blocks if not block.name.startswith(NO_SENTENCES))
    said = sayings(body, (text for one in data for text in texts_in(one)))
    return element(Block("language/said", msgspec.json.encode(said)))


@cache
def layout_worker() -> Markup:
    """The script of the worker as one JSON string.

    Raises:
        InputError: the file is missing from this installation.
    """
    return element(Block("worker/layout", msgspec.json.encode(asset("layout.js"))))
