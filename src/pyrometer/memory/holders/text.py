"""Keys and names of the user's program as short, harmless text."""

from __future__ import annotations

from typing import Any

from pyrometer.memory.holders import kinds
from pyrometer.text import shortened

MAX_CHARS = 40
_SIMPLE = (str, bytes, int, float, complex)


def key_text(key: Any, *, depth: int = 1) -> str:
    r"""A dictionary's key; `…` for what would have to be asked to describe itself.

    Only the text forms of Python's own types are used, never a `__repr__` of the user's.

    >>> key_text("loss"), key_text(7), key_text(("train", 3)), key_text(object())
    ('"loss"', '7', '"train", 3', '…')
    >>> key_text("x" * 100)
    '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"'
    >>> key_text("a\x1b[31m\n")
    '"a\\x1b[31m\\n"'
    """
    if key is None or key is True or key is False:
        return str(key)
    if type(key) is tuple and depth and 0 < len(key) <= 3:
        return ", ".join(key_text(part, depth=0) for part in key)
    for simple in _SIMPLE:
        if kinds.is_kind(key, simple):
            return _quoted(str.__str__(key)) if simple is str else shortened(simple.__repr__(key), MAX_CHARS)
    return "…"


def name_text(name: Any) -> str:
    r"""An attribute or variable as it is written behind a dot.

    >>> name_text("history"), name_text("a b"), name_text(3)
    ('.history', '["a b"]', '[3]')
    """
    if kinds.is_kind(name, str):
        plain = str.__str__(name)
        if plain.isidentifier() and len(plain) <= 2 * MAX_CHARS:
            return f".{plain}"
    return f"[{key_text(name)}]"


def _quoted(text: str) -> str:
    shown = shortened(text, MAX_CHARS)
    escaped = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in shown.replace("\\", "\\\\"))
    return '"' + escaped.replace('"', '\\"') + '"'
