"""The shapes of which a told document consists: an answer, and chapters of blocks.

A renderer has one layout per type of block, and neither chooses nor orders anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pyrometer.report.facts.layout import Fact, Section, Table

if TYPE_CHECKING:
    from pyrometer.advice import Advice
    from pyrometer.bench.quality import Caveat
    from pyrometer.report.charts.shares import Share
    from pyrometer.report.facts.compile_breaks import Card
    from pyrometer.report.facts.finding_views import FindingView
    from pyrometer.report.facts.matrix import HeatMap


MOST_CHARACTERS = 60
"""Of a sentence that stands as a heading."""

_JOINTS = re.compile(r" · |; |: |, | \(")


def concise(text: str, most: int = MOST_CHARACTERS) -> str:
    """As much of a text as a heading has room for: whole parts of it, else its first words.

    >>> concise("3 ms per step (2.9–3.1) · steady", 30), concise("steady"), concise("one two three", 9)
    ('3 ms per step (2.9–3.1)', 'steady', 'one two…')
    >>> concise("no change · B: new code against A: old", 30)
    'no change'
    """
    if len(text) <= most:
        return text
    for joint in reversed(list(_JOINTS.finditer(text[: most + 1]))):
        said = text[: joint.start()]
        label = joint[0] == ": " and " · " in said  # what stands before a colon late in a text is no answer
        if not label and said.count("(") == said.count(")"):
            return said
    return f"{text[: most - 1].rpartition(' ')[0]}…"


class Answer(NamedTuple):
    """What stands above all chapters."""

    headline: str
    subtitle: str = ""
    leading: int = 1  # parts of the headline that are the answer; the rest stands aside
    tone: Literal["", "faster", "slower", "same", "undecided", "failed", "words"] = ""
    bound: str = ""  # a second sentence of the same weight
    cautions: Sequence[str] = ()
    verdict: str = ""  # the answer in one short sentence; the beginning of the headline where empty
    besides: str = ""  # what `bound` adds to a verdict that has its share, as measured; all of it where empty

    @property
    def sentence(self) -> str:
        """The answer in one sentence, short enough to stand as a heading."""
        return self.verdict if 0 < len(self.verdict) <= MOST_CHARACTERS else concise(self.headline)


class Figures(NamedTuple):
    """The few figures for which a reader looks first."""

    facts: Sequence[Fact]


class Facts(NamedTuple):
    """Figures or sentences, each with its name."""

    facts: Sequence[Fact]

    @property
    def has_prose(self) -> bool:
        """Whether some fact is a sentence, and so wants a line of its own."""
        return Section("", "", list(self.facts)).has_prose


class Rows(NamedTuple):
    """A table."""

    table: Table
    label: str = ""  # for those who do not see it; the chapter's title where empty
    folded: str = ""  # the words under which a page may fold it
    is_whole: bool = False  # never shortened


class Shares(NamedTuple):
    """A whole and its parts."""

    shares: Sequence[Share]
    whole: str
    slug: str = ""  # of the interactive part that stands for it
    in_all: Fact | None = None  # how much the whole is


class Chart(NamedTuple):
    """A drawing, by the name under which a renderer that can draw finds it."""

    name: str
    record: Any
    caption: str = ""
    how: str = ""
    change: str = ""
    pages: str = ""  # those of the chapter where empty


class Caveats(NamedTuple):
    """Reservations with what to do next, or what the trust rests on where there are none."""

    caveats: Sequence[Caveat]
    trust: str = ""
    is_sound: bool = False
    has_failed: bool = False
    conditions: Sequence[Fact] = ()


class Alerts(NamedTuple):
    """What must not be overlooked, a sentence each."""

    lines: Sequence[str]


class Code(NamedTuple):
    """Something to type."""

    text: str


class Text(NamedTuple):
    """A remark."""

    text: str


class Machine(NamedTuple):
    """The machine in one line."""

    line: str


class FindingCards(NamedTuple):
    """Findings; `first` is what must be mended before any of them."""

    views: Sequence[FindingView]
    first: Caveat | None = None


class Answers(NamedTuple):
    """A table of questions or demands: its name, how it stands, what is said, and what more; `tones` colours the second."""

    table: Table
    tones: Sequence[str]


class AdviceCards(NamedTuple):
    """What to change, why, and what to write."""

    advice: Sequence[Advice]


class BreakCards(NamedTuple):
    """Graph breaks, and what to write instead."""

    cards: Sequence[Card]
    total: int


class Heat(NamedTuple):
    """A figure per pair of settings."""

    heat: HeatMap
    label: str


Block = (
    Figures | Facts | Rows | Shares | Chart | Caveats | Alerts | Code | Text | Machine | FindingCards | Answers | AdviceCards
    | BreakCards | Heat
)  # fmt: skip


class Chapter(NamedTuple):
    """A titled part of a told document."""

    slug: str
    title: str
    blocks: Sequence[Block] = ()
    pages: str = "overview"  # of a divided document, on which it stands
    says: str = ""  # its own answer, beside the title
    lead: Sequence[str] = ()
    how: str = ""  # how to read this
    change: str = ""  # what would change the conclusion
    label: str = ""  # where there is no room for the title; the slug where empty
    rank: str = ""  # whose it is, where several ranks have the same chapter
    place: Literal["", "story", "card", "part", "quiet"] = ""  # a part is the heading of what follows


class Told(NamedTuple):
    """A document in words: what every renderer lays out."""

    answer: Answer
    chapters: Sequence[Chapter]


def chapter_of(section: Section, pages: str, *charts: Chart, **fields: Any) -> Chapter:
    """A chapter that holds a section of facts, and drawings."""
    blocks: list[Block] = [Facts(section.facts)] if section.facts else []
    blocks += charts
    if section.table is not None and section.table.rows:
        blocks.append(Rows(section.table))
    chapter = Chapter(section.slug, section.title, blocks, pages, how=section.how, change=section.change)
    return chapter._replace(**fields)
