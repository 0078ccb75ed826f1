"""What belongs to the script but travels beside it as data, so that a page carries no more of it than it needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import msgspec
from markupsafe import Markup

from pyrometer.errors import InputError
from pyrometer.report.payloads.block import Block, element

ARRANGED = ("graphs",)
"""Areas of blocks whose widgets arrange boxes in a worker."""


def beside_script(blocks: Iterable[Block]) -> list[Markup]:
    """What the script of a page with these blocks may ask for: the dictionary, and the worker that arranges graphs."""
    arranged = any(block.name.partition("/")[0] in ARRANGED for block in blocks)
    return [dictionary(), layout_worker()] if arranged else [dictionary()]


@cache
def dictionary() -> Markup:
    """English texts of the interface and what they are in Chinese.

    Raises:
        InputError: the file is missing from this installation.
    """
    return element(Block("language/zh", _asset("chinese.json")))


@cache
def layout_worker() -> Markup:
    """The script of the worker as one JSON string.

    Raises:
        InputError: the file is missing from this installation.
    """
    return element(Block("worker/layout", msgspec.json.encode(_asset("layout.js").decode())))


def _asset(name: str) -> bytes:
    try:
        return files("pyrometer.report").joinpath(f"assets/{name}").read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            f"{name} is missing from this installation; build it with make web, or reinstall pyrometer"
        ) from error
