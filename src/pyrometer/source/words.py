"""Sets of names, written as text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text.

    >>> sorted(words("relu gelu"))
    ['gelu', 'relu']
    """
    return frozenset(text.split())
