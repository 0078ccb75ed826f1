"""What was asked for besides, such as a difference or a prediction, as rows of a short answer."""

from __future__ import annotations

from pyrometer.report.answer.short import Part, Whole
from pyrometer.report.facts.layout import Fact, Section

MOST_FIGURE = 20
"""Characters of what is a figure rather than a sentence."""


def whole_of(section: Section) -> Whole:
    """A chapter as rows: its facts, then its table with the first columns of each row."""
    facts = [_part(fact) for fact in section.facts]
    rows = section.table.rows if section.table is not None else []
    parts = [
        Part(row[0], row[1] if len(row) > 1 else "", note=" · ".join(cell for cell in row[2:4] if cell))
        for row in rows
    ]
    return Whole(section.title, "", [*facts, *parts])


def _part(fact: Fact) -> Part:
    """A figure with its remark; a sentence has the whole row."""
    if len(fact.value) <= MOST_FIGURE:
        return Part(fact.label, fact.value, note=fact.note)
    return Part(fact.label, "", note=fact.line)
