"""Where the interactive parts stand: each follows from a data block that the page carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from markupsafe import Markup

PLACES: dict[str, tuple[tuple[str, str], ...]] = {
    "trace": (("timeline", "timeline"), ("icicle", "flame")),
    "operators": (("operators", "operators"),),
    "roofline": (("roofline", "roofline"),),
    "idle": (("idle", "idle"),),
    "measurement": (("samples", "quality"),),
    "graphs": (("graphs", "compile"),),
    "breaks": (("breaks", "compile"),),
    "phases": (("steps", "compile"),),
    "compile": (("compile", "compile"),),
    "graphdiff": (("graphdiff", "comparison"),),
    "memory": (("memory", "memory"),),
    "grown": (("grown", "comparison"),),
    "loading": (("loading", "data"),),
    "findings": (("evidence", "findings"),),
    "verdict": (("forest", "comparison"),),
    "difference": (("icicle", "comparison"),),
    "history": (("history", "history"),),
}
"""Area of a block (its name up to the first slash): the widgets that draw it, each with its page."""


class InteractivePart(NamedTuple):
    """An interactive part: its widget, the page on which it stands, and the block that it draws."""

    widget: str
    page: str
    block: str

    def element(self) -> Markup:
        """The empty element that the script fills; without a script nothing of it is seen."""
        return Markup('<div class="widget" data-page="{}" data-widget="{}" data-block="{}"></div>').format(
            self.page, self.widget, self.block
        )


def places(blocks: Iterable[str]) -> Iterator[InteractivePart]:
    """The interactive parts of a page that carries these blocks.

    >>> [place.page for place in places(["trace/0"])]
    ['timeline', 'flame']
    """
    for block in blocks:
        for widget, page in PLACES.get(block.partition("/")[0], ()):
            yield InteractivePart(widget, page, block)
