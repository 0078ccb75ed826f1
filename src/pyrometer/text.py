"""Texts and paths cut to the room that there is for them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*[,;.]?")


def shortened(text: str, most: int = 60, *, tail: int = 0) -> str:
    """A text of at most so many characters; what is cut is left out before the last `tail` ones.

    >>> shortened("convolution", 5), shortened("void kernel<float, 4>", 11, tail=5)
    ('conv…', 'void …t, 4>')
    """
    if len(text) <= most:
        return text
    return f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"


def one_line(text: str, most: int = 60) -> str:
    r"""A text on one line, its end cut where it is too long for a sentence.

    >>> one_line("a\n  b"), one_line("abcdef", 4)
    ('a b', 'abc…')
    """
    return shortened(" ".join(text.split()), most)


def with_capital(text: str) -> str:
    """With a capital letter, unless it begins with a name of the code.

    >>> with_capital("load with one worker"), with_capital("aten::mm takes half of the step")
    ('Load with one worker', 'aten::mm takes half of the step')
    """
    is_word = _WORD.fullmatch(text.partition(" ")[0])
    return text[:1].upper() + text[1:] if is_word else text


def listed(values: Sequence[object], most: int = 8) -> str:
    """Some values, of many the first ones and their number.

    >>> listed([3, 4]), listed([3, 4], most=1)
    ('3, 4', '3, … (2 in all)')
    """
    text = ", ".join(map(str, values[:most]))
    return text if len(values) <= most else f"{text}, … ({len(values)} in all)"


def shown_path(path: str | Path) -> str:
    """A path as people read it: relative to the working directory where it lies below.

    >>> shown_path(os.path.abspath("train.py")), shown_path("/elsewhere/train.py")
    ('train.py', '/elsewhere/train.py')
    """
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
