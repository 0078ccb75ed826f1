"""Carrying out a rewrite in source text."""

from __future__ import annotations

from pyrometer.advice import Advice
from pyrometer.errors import InputError


def apply_rewrite(source: str, advice: Advice, line: int) -> str:
    r"""Replace the user's lines by the rewrite, with the indentation that is there.

    Of several places that read like them, the one that holds the line is taken, else the nearest.

    Args:
        source: the whole file.
        advice: a rewrite that replaces lines.
        line: the break's, counted from 1.

    Raises:
        InputError: the rewrite replaces no text, or the lines are not in the source.

    >>> double = Advice(slug="a", title="", why="", replaces="y = x", rewrite="y = 2 * x", fix_class="exact",)
    >>> print(apply_rewrite("def f(x):\n    y = x\n    return y", double, 2))
    def f(x):
        y = 2 * x
        return y
    """
    if not advice.replaces:
        raise InputError(
            f"rewrite {advice.title!r} replaces no text; run its setting instead: {advice.rewrite!r}"
        )
    lines, wanted = source.split("\n"), advice.replaces.split("\n")
    places = [start for start in range(len(lines)) if _stands_at(lines, start, wanted)]
    if not places:
        raise InputError(
            f"line {line}: the source does not hold {advice.replaces!r}; it changed since the break was recorded"
        )
    start = min(places, key=lambda place: _distance(place, len(wanted), line - 1))
    indent = _indent(lines[start])
    new = [indent + text if text.strip() else "" for text in (advice.rewrite or "").split("\n")]
    return "\n".join([*lines[:start], *new, *lines[start + len(wanted) :]])


def _stands_at(lines: list[str], start: int, wanted: list[str]) -> bool:
    if start + len(wanted) > len(lines):
        return False
    indent = _indent(lines[start])
    return all(
        have == indent + want or not (have.strip() or want.strip())
        for have, want in zip(lines[start : start + len(wanted)], wanted, strict=True)
    )


def _distance(start: int, length: int, line: int) -> int:
    return max(start - line, line - (start + length - 1), 0)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
