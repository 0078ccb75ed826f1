"""Our own style sheets and scripts as they stand in a page: of the report's script only what the page needs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.errors import InputError

MARK = "//@"
"""Before each piece of the report's script stands a line of this and the widgets that need the piece; where it names
none, every page does."""


class Inline(NamedTuple):
    """One of our own files as it stands in a page, and the hash by which the page's policy admits it."""

    text: Markup
    hash: str


@cache
def inline(name: str) -> Inline:
    """A whole style sheet or script among our assets.

    Raises:
        InputError: it is missing.
    """
    return _inline(asset(name))


def script(widgets: Collection[str]) -> Inline:
    """The report's script for a page with these widgets: without the pieces that none of them needs.

    Raises:
        InputError: it is missing from this installation.
    """
    return _script(frozenset(widgets))


def asset(name: str) -> str:
    """The text of a file among our assets.

    Raises:
        InputError: it is missing.
    """
    try:
        return files("pyrometer.report").joinpath(f"assets/{name}").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{name} is missing from this installation; build it with make web, or reinstall pyrometer"
        ) from error


@lru_cache(maxsize=32)
def _script(widgets: frozenset[str]) -> Inline:
    needed = (code for needing, code in pieces() if not needing or needing & widgets)
    return _inline("\n".join(needed))


def pieces() -> Iterator[tuple[frozenset[str], str]]:
    """All pieces of the report's script in their order, each with the widgets that need it (none: all pages do)."""
    for piece in f"\n{inline('report.js').text}".split(f"\n{MARK}")[1:]:
        named, _, code = piece.partition("\n")
        yield frozenset(named.split()), code


def _inline(text: str) -> Inline:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Inline(Markup(text), f"sha256-{digest}")  # noqa: S704 - our own file
