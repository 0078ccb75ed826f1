"""What belongs to the script but travels beside it as data, so that a page carries no more of it than it needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec
from markupsafe import Markup

from pyrometer.report.inline import asset
from pyrometer.report.payloads.block import Block, element, readable_element

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


@cache
def layout_worker() -> Markup:
    """The script of the worker as one JSON string.

    Raises:
        InputError: the file is missing from this installation.
    """
    return element(Block("worker/layout", msgspec.json.encode(asset("layout.js"))))
