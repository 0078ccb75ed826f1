"""How chapters stand on a page that its script divides: what its first screen holds, and their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.chapters.chapter import AdviceCards, BreakCards, Chapter, FindingCards, Told
from pyrometer.report.excerpts import Line
from pyrometer.report.facts.finding_views import FindingView
from pyrometer.report.navigation import replaced
from pyrometer.report.widgets import InteractivePart

TOP = 3
"""Findings of which the overview tells."""


class PageParts(NamedTuple):
    """What a page knows beside its chapters."""

    widgets: Sequence[InteractivePart]
    excerpts: Mapping[str, Sequence[Line]]  # by the anchor of a finding
    folded: Mapping[str, str]  # rank: the pages on which all of its chapters are drawn


class FirstScreen(NamedTuple):
    """The chapters of a page: the first run of those that stand beside each other, and all before and behind it."""

    before: list[Chapter]
    story: list[Chapter]
    cards: list[Chapter]
    rest: list[Chapter]
    teaser: FindingCards | None  # the first findings, on the overview

    @property
    def top(self) -> list[FindingView]:
        """The findings of the teaser."""
        return list(self.teaser.views[:TOP]) if self.teaser is not None else []

    @property
    def card_pages(self) -> str:
        """The pages on which some card stands."""
        return " ".join(dict.fromkeys(page for card in self.cards for page in card.pages.split()))


class Counted(NamedTuple):
    """A link from the overview to the page that has all of some cards."""

    words: str
    number: int


def first_screen(told: Told) -> FirstScreen:
    """The chapters of a document by where they stand."""
    before = list(takewhile(lambda chapter: not _stands_beside(chapter), told.chapters))
    beside = list(takewhile(_stands_beside, told.chapters[len(before) :]))
    full = [chapter for chapter in beside if _has_findings(chapter) and chapter.place != "story"]
    rest = [*full, *told.chapters[len(before) + len(beside) :]]
    blocks = (block for chapter in beside for block in chapter.blocks if isinstance(block, FindingCards))
    return FirstScreen(
        before,
        [chapter for chapter in beside if chapter.place == "story"],
        [chapter for chapter in beside if chapter.place == "card"],
        [chapter for chapter in rest if not _only_teases(chapter)],
        next(blocks, None),
    )


def _stands_beside(chapter: Chapter) -> bool:
    return (chapter.place in {"story", "card"} and "overview" in chapter.pages) or _has_findings(chapter)


def _has_findings(chapter: Chapter) -> bool:
    return any(isinstance(block, FindingCards) for block in chapter.blocks)


def _only_teases(chapter: Chapter) -> bool:
    """Whether all that a chapter holds stands on the overview already."""
    return (
        bool(chapter.blocks)
        and not chapter.lead
        and all(isinstance(block, FindingCards) and not block.views for block in chapter.blocks)
    )


def parted(headline: str) -> list[tuple[str, str]]:
    """The parts of a headline, each with its interval apart.

    >>> parted("3 ms per step (2.9–3.1) · steady")
    [('3 ms per step', '(2.9–3.1)'), ('steady', '')]
    """
    parts = [part.partition(" (") for part in headline.split(" · ")]
    return [(said, f"({interval}" if interval else "") for said, _, interval in parts]


def anchor(chapter: Chapter) -> str:
    """The address of a chapter; those of the parts of a rank have it in their slug."""
    whose = f"-{chapter.rank}" if chapter.rank and chapter.place != "part" else ""
    return f"{chapter.slug}{whose}"


def counted(chapter: Chapter) -> Counted | None:
    """Where the overview shows but the first cards of a chapter, the link to all of them."""
    if not chapter.pages.startswith("overview "):
        return None
    for block in chapter.blocks:
        if isinstance(block, BreakCards):
            return Counted("All breaks", block.total)
        if isinstance(block, AdviceCards):
            return Counted("All advice", len(block.advice))
    return None


def attributes(chapter: Chapter, page: PageParts) -> Markup:
    """The pages on which a chapter stands, its looks, and whether an interactive part stands for it."""
    looks = {"split": "split", "findings": "findings"}.get(chapter.slug.removeprefix("traced-"), "")
    looks = chapter.place if chapter.place in {"card", "part"} else looks
    markup = Markup('data-page="{}"').format(chapter.pages)
    markup += Markup(' class="{}"').format(looks) if looks else Markup()
    if chapter.place == "card":
        return markup  # never folded
    if chapter.place == "part" and chapter.rank:
        return markup + Markup(' data-static-on="{}"').format(page.folded.get(chapter.rank, ""))
    return markup + Markup(replaced(chapter.slug, page.widgets, chapter.rank))  # noqa: S704 - our own words


def folded_parts(told: Told, widgets: Iterable[InteractivePart]) -> dict[str, str]:
    """By rank, the pages on which interactive parts stand for all of its chapters."""
    places = list(widgets)
    shown: dict[str, dict[str, bool]] = {}
    for chapter in told.chapters:
        if not chapter.rank or chapter.place == "part":
            continue
        pages = shown.setdefault(chapter.rank, {})
        folds = bool(replaced(chapter.slug, places, chapter.rank))
        for page in chapter.pages.split():
            pages[page] = pages.get(page, True) and folds
    return {rank: " ".join(page for page, folds in pages.items() if folds) for rank, pages in shown.items()}
