"""Patterns of `.gitignore` files, read as git reads them.

A pattern is asked about one path alone. What lies in a folder that is left out is never asked about, so that a pattern
which lets a folder in says nothing about what lies in it, as in git; `pathspec` takes it to let all of that in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(
    r"\\(?P<escaped>.)|(?P<stars>\*+)|(?P<one>\?)|\[(?P<inverse>[!^]?)(?P<members>\]?(?:\\.|\[:\w+:\]|[^]\\])*)\]|(?P<plain>[^\\\[])"
)
_MEMBER = re.compile(r"\\(?P<escaped>.)|\[:(?P<kind>\w+):\]|(?P<range>-)|(?P<plain>.)")


class GitPattern(NamedTuple):
    """One line of a file.

    Attributes:
        expression: what fits a path from the file's folder, without a slash at its end.
        leaves_out: whether what fits is left out, or let in again.
        only_folders: whether it says nothing about files.
    """

    expression: re.Pattern[str]
    leaves_out: bool
    only_folders: bool


def read_patterns(text: str) -> list[GitPattern]:
    """The patterns of a file in its order; lines that are none fit nothing, as in git."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [pattern for line in lines if (pattern := _read(line)) is not None]


def verdict(patterns: list[GitPattern], path: str, *, is_folder: bool) -> bool | None:
    """Whether a path is left out (true) or let in again (false) by the last pattern that fits; nothing where none does.

    >>> patterns = read_patterns("*.py" + chr(10) + "!/src/keep.py")
    >>> [verdict(patterns, path, is_folder=False) for path in ("src/a.py", "src/keep.py", "a.txt")]
    [True, False, None]
    """
    for pattern in reversed(patterns):
        if (is_folder or not pattern.only_folders) and pattern.expression.fullmatch(path):
            return pattern.leaves_out
    return None


def _read(line: str) -> GitPattern | None:
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if line.startswith("#"):
        return None
    text = line.removeprefix("!")
    only_folders = text.endswith("/")
    body = text.removesuffix("/")
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body:
        return None
    try:
        expression = _anchored(body) if anchored else f"(?:.*/)?{_name(body)}"
        return GitPattern(re.compile(expression, re.DOTALL), text == line, only_folders)
    except (ValueError, re.error):
        return None


def _anchored(body: str) -> str:
    *heads, last = body.split("/")
    folders = ["(?:.*/)?" if head == "**" else f"{_name(head)}/" for head in heads]
    return "".join(folders) + (".+" if last == "**" else _name(last))


def _name(pattern: str) -> str:
    return "".join(_tokens(pattern))


def _tokens(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            raise ValueError(f"{pattern}: ends in the middle of a choice or an escape")
        at = token.end()
        if token["stars"]:
            yield "[^/]*"
        elif token["one"]:
            yield "[^/]"
        elif token["members"] is not None:
            yield f"(?!/)[{'^' if token['inverse'] else ''}{''.join(_members(token['members']))}]"
        else:
            yield re.escape(token["escaped"] or token["plain"])


def _members(members: str) -> Iterator[str]:
    for member in _MEMBER.finditer(members):
        if member["kind"]:
            yield _CLASSES.get(member["kind"], "")
        else:
            yield member["range"] or re.escape(member["escaped"] or member["plain"])
