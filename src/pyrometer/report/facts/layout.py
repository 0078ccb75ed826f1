"""The shapes that facts come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Fact(NamedTuple):
    """One figure with its name, and optionally a remark such as its interval."""

    label: str
    value: str
    note: str = ""

    @property
    def line(self) -> str:
        """Value and note as one text.

        >>> Fact("first call", "212 ms", "6.63× the median step").line
        '212 ms (6.63× the median step)'
        """
        return f"{self.value} ({self.note})" if self.note else self.value


class Table(NamedTuple):
    """Rows of text under column titles; the first column names the row, the others hold figures."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: frozenset[int] = frozenset()  # columns beside the first that hold words, and so begin on the left


def shortened(table: Table, most: int) -> Table:
    """At most so many rows; a last one says how many are left out.

    >>> shortened(Table(("n", "square"), [("1", "1"), ("2", "4"), ("3", "9")]), 2).rows
    [('1', '1'), ('and 2 more', '')]
    """
    if len(table.rows) <= most:
        return table
    kept = list(table.rows[: most - 1])
    left = f"and {len(table.rows) - len(kept):,} more"
    return table._replace(rows=[*kept, (left, *("",) * (len(table.columns) - 1))])


PROSE = 50
"""Characters above which a fact is a sentence rather than a figure."""


class Section(NamedTuple):
    """One chapter of a report: a title, figures, a table, and how to read them."""

    slug: str
    title: str
    facts: list[Fact]
    table: Table | None = None
    how: str = ""  # how to read this
    change: str = ""  # what would change the conclusion

    @property
    def has_prose(self) -> bool:
        """Whether some fact is a sentence, and so wants a line of its own."""
        return any(len(fact.value) > PROSE for fact in self.facts)

    def shortened(self, most: int) -> Section:
        """The same with at most so many rows of its table."""
        return self if self.table is None else self._replace(table=shortened(self.table, most))


def told(sections: Iterable[Section | None]) -> list[Section]:
    """The chapters that say anything: a fact, or a row."""
    return [
        each for each in sections if each is not None and (each.facts or (each.table and each.table.rows))
    ]


def percent(share: float) -> str:
    """A confidence or a share with no more digits than it needs.

    >>> percent(0.99), percent(0.995), percent(0.0213), percent(0.0001)
    ('99 %', '99.5 %', '2.13 %', '< 0.1 %')
    """
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{share * 100:.3g} %"


def spans(text: str) -> list[tuple[str, bool]]:
    """A text divided at its backticks; true for the parts that are code, such as a command to type.

    >>> spans("run `make` again")
    [('run ', False), ('make', True), (' again', False)]
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(text, False)]
    return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]
