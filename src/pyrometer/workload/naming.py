"""Short names that tell two targets apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FACTORY = re.compile(r"(?P<place>.+):(?P<factory>[A-Za-z_][\w.]*)")


def told_apart(a: str, b: str) -> tuple[str, str]:
    """Name two targets, or files, by what differs between them: factory, file or folder; unchanged where nothing does.

    >>> told_apart("models/net.py:small", "models/net.py:large")
    ('small', 'large')
    >>> told_apart("before/model.py:work", "after/model.py:work")
    ('before', 'after')
    >>> told_apart("../before/model.py:work", "model.py:work")
    ('../before/model.py', 'model.py')
    >>> told_apart("old.py:build", "new.py:main"), told_apart("model.py:work", "model.py:work")
    (('old.py:build', 'new.py:main'), ('model.py:work', 'model.py:work'))
    """
    (place_a, factory_a), (place_b, factory_b) = _split(a), _split(b)
    if place_a == place_b:
        return (factory_a, factory_b) if factory_a and factory_b and factory_a != factory_b else (a, b)
    places = _places(place_a, place_b)
    if factory_a == factory_b:
        return places
    named = [
        f"{place}:{factory}" if factory else place
        for place, factory in zip(places, (factory_a, factory_b), strict=True)
    ]
    return named[0], named[1]


def _split(text: str) -> tuple[str, str]:
    match = _FACTORY.fullmatch(text)
    return (match["place"], match["factory"]) if match else (text, "")


def _places(a: str, b: str) -> tuple[str, str]:
    """Two different paths without the folders and names that they share; something is left of either."""
    left, right = a.split("/"), b.split("/")
    while min(len(left), len(right)) > 1 and left[0] == right[0]:
        left, right = left[1:], right[1:]
    while min(len(left), len(right)) > 1 and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    return "/".join(left), "/".join(right)


def with_commits(names: Sequence[str], commits: Sequence[str]) -> tuple[str, str]:
    """Two names with their commits, where both are known and differ.

    >>> with_commits(["before", "after"], ["1a2b3c4", "5d6e7f8+"])
    ('before at 1a2b3c4', 'after at 5d6e7f8+')
    """
    if all(commits) and commits[0] != commits[1]:
        names = [f"{name} at {commit}" for name, commit in zip(names, commits, strict=True)]
    return names[0], names[1]
