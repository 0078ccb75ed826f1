"""Texts that a block holds once and names by number."""

from __future__ import annotations


class Texts:
    """A list of texts without repetitions; the first one is empty.

    >>> texts = Texts()
    >>> texts.row("aten.mm"), texts.row(""), texts.row("aten.mm"), texts.rows
    (1, 0, 1, ['', 'aten.mm'])
    """

    def __init__(self) -> None:
        self.rows = [""]
        self._numbers = {"": 0}

    def row(self, text: str) -> int:
        """The number of a text, which is added where it is new."""
        number = self._numbers.setdefault(text, len(self.rows))
        if number == len(self.rows):
            self.rows.append(text)
        return number
