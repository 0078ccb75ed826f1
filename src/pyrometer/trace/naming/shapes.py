"""Shapes of an operator's inputs, as people write them."""

from __future__ import annotations

import json
from typing import Any

MOST_SHAPES = 4
"""Inputs that are told; the others, which are seldom what matters, are counted."""


def shape_words(recorded: str | None, most: int = MOST_SHAPES) -> str:
    """The shapes of the tensors among the inputs, from the list that a trace records; what is no such list stays as it is.

    >>> shape_words("[[16,32,28,28],[32,32,3,3],[],[]]"), shape_words("[[], []]"), shape_words(None)
    ('16×32×28×28, 32×32×3×3', 'scalars', '')
    >>> shape_words("[[[4,2],[4,3]],[]]"), shape_words("[[1],[2],[3]]", most=2), shape_words("dynamic")
    ('(4×2, 4×3)', '1, 2, and 1 more', 'dynamic')
    """
    try:
        document = json.loads(recorded or "[]")
    except ValueError:
        document = None
    if not isinstance(document, list):
        return recorded or ""
    told = [words for shape in document if (words := _words(shape))]
    if len(told) > most:
        told = [*told[:most], f"and {len(told) - most} more"]
    return ", ".join(told) or ("scalars" if document else "")


def _words(shape: Any) -> str:
    """One input: a tensor, or a list of tensors; empty for a scalar."""
    if not isinstance(shape, list) or not shape:
        return ""
    if all(isinstance(size, list) for size in shape):
        parts = [words for size in shape if (words := _words(size))]
        return f"({', '.join(parts)})" if parts else ""
    return "×".join(str(size) for size in shape)
