"""Patterns of paths, as `exclude` and `per-file-ignores` name files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


def path_matches(shown: str, patterns: Iterable[str]) -> bool:
    """Whether a path with forward slashes, or a folder that it lies in, has one of these patterns.

    `*` and `?` stay within one name, `**` crosses folders, a pattern without a slash fits a name at any depth:

    >>> path_matches("src/old/train.py", ["old"]), path_matches("src/old/train.py", ["src/*.py"])
    (True, False)
    >>> path_matches("tests/a/test_x.py", ["tests/**"]), path_matches("tests/a/test_x.py", ["**/test_*.py"])
    (True, True)
    """
    whole = [re.compile(_expression(pattern)) for pattern in patterns]
    parts = shown.split("/")
    heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(pattern.fullmatch(head) for pattern in whole for head in heads)


def relative_to(file: Path, folder: Path) -> str:
    """A path as patterns see it: from `folder` where it lies within, else whole; with forward slashes."""
    whole = Path(file).absolute()
    try:
        return whole.relative_to(folder).as_posix()
    except ValueError:
        return whole.as_posix()


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> str:
    text = pattern.replace("\\", "/").removeprefix("./").rstrip("/")
    anchored = "/" in text
    parts = [_part(part) for part in re.split(r"(/\*\*/|\*\*/|/\*\*|\*\*|\[!?\]?[^]]*\]|\*|\?)", text)]
    return ("" if anchored else "(?:.*/)?") + "".join(parts)


def _part(part: str) -> str:
    wild = {"/**/": "/(?:.*/)?", "**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in wild:
        return wild[part]
    if part.startswith("[") and part.endswith("]") and len(part) > 2:
        return _characters(part)
    return re.escape(part)


def _characters(part: str) -> str:
    """A choice of characters; what is none, such as a range that runs backwards, means itself."""
    inner = part[1:-1].replace("\\", "\\\\").replace("[", r"\[")
    choice = f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    try:
        re.compile(choice)
    except re.error:
        return re.escape(part)
    return choice
