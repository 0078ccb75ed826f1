"""How torch says that a frame was compiled too often, in its releases since 2.4."""

from __future__ import annotations

import re
from typing import NamedTuple

RAISED_LIMIT = "FailOnRecompileLimitHit"
"""The exception where the program asked for one; else the frame runs eagerly from then on, in silence."""

_TYPES = frozenset({RAISED_LIMIT, "RecompileLimitExceeded", "CacheLimitExceeded"})
_FIRST_LINE = re.compile(r"^Dynamo (?:recompile|cache) limit exceeded|_limit reached\b")
_NAME = re.compile(r"Limit type: (\w+)|exceeding the (\w+) cache size limit|\b(\w+_limit) reached")
_VALUE = re.compile(r"currently set to (\d+)")


class RecompileLimit(NamedTuple):
    """The limit that was reached; what is not told is empty."""

    name: str = ""
    """recompile_limit, accumulated_recompile_limit, …"""
    value: int | None = None


def read_limit(failure: str | None, text: str) -> RecompileLimit | None:
    r"""The limit at which a compilation failed; `None` if it failed for something else, or not at all.

    Args:
        failure: the exception's name, as the compilation metrics tell it.
        text: the exception's text.

    >>> read_limit("Unsupported", "Dynamo recompile limit exceeded\n … (currently set to 8)\n Limit type: recompile_limit")
    RecompileLimit(name='recompile_limit', value=8)
    """
    if failure not in _TYPES and not (failure and _FIRST_LINE.search(text.partition("\n")[0])):
        return None
    name, value = _NAME.search(text), _VALUE.search(text)
    return RecompileLimit(
        next(filter(None, name.groups()), "") if name else "", int(value[1]) if value else None
    )
