"""Size and limit of a container, asked of Python's own types only."""

from __future__ import annotations

import collections
import functools
from typing import Any

from pyrometer.memory.holders import kinds

SEQUENCES: tuple[type, ...] = (list, tuple, set, frozenset, collections.deque)
LRU_CACHE = type(functools.lru_cache(lambda: None))

_SIZED: tuple[Any, ...] = (*SEQUENCES, dict)


def length_of(container: Any) -> int | None:
    """How many elements a container has; `None` for what is none of Python's own.

    >>> length_of([1, 2]), length_of({}), length_of(object())
    (2, 0, None)
    """
    for known in _SIZED:
        if kinds.is_kind(container, known):
            return int(known.__len__(container))
    if type(container) is LRU_CACHE:
        return container.cache_info().currsize
    return _inner_length(container)


def limit_of(container: Any) -> int | None:
    """The most elements that a container may have; `None` where there is no limit.

    >>> limit_of(collections.deque(maxlen=3)), limit_of([])
    (3, None)
    """
    if kinds.is_kind(container, collections.deque):
        return collections.deque.maxlen.__get__(container)  # type: ignore[no-any-return]
    if type(container) is LRU_CACHE:
        return container.cache_info().maxsize
    return None


def holds(container: Any) -> bool:
    """Whether an object is a container that grows."""
    return type(container) is LRU_CACHE or any(kinds.is_kind(container, known) for known in _SIZED)


def _inner_length(container: Any) -> int | None:
    """Of those that keep a container inside: WeakKeyDictionary and UserDict, and queues."""
    for name in ("data", "queue"):
        inner = kinds.attributes_of(container).get(name)
        for known in (dict, list, collections.deque):
            if type(inner) is known:
                return int(known.__len__(inner))
    return None
