"""Python objects that a dataset holds, which forked workers copy page by page.

A forked worker shares the memory of its parent until it writes to it. Looking at a Python object writes to it: its count of
references is in it. So the objects of a list of a million strings are copied, in every worker, one page after the other;
the bytes of an array are not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from pyrometer.loading.profiling.keeping import linked_objects
from pyrometer.loading.profiling.record import HeldObjects
from pyrometer.quantity import Bytes

MIN_OBJECTS = 1000
_SAMPLED = 1000
_DEPTH = 4
_PAGE_BYTES = 4096  # of a long text, only the page with the count of references is written to
_CONTAINERS = (list, tuple, dict, set, frozenset)


def held_objects(dataset: Any) -> list[HeldObjects]:
    """Containers of at least 1000 Python objects among the attributes of a dataset, largest first.

    What they take is estimated from up to 1000 elements at even distances.
    """
    found: dict[int, HeldObjects] = {}
    for owner in linked_objects([dataset]):
        if isinstance(owner, (list, tuple)) and len(owner) >= MIN_OBJECTS:
            found[id(owner)] = _estimate("the dataset itself", owner)
        for name, value in getattr(owner, "__dict__", {}).items():
            large = isinstance(value, _CONTAINERS) and len(value) >= MIN_OBJECTS
            if large or _is_object_array(value):
                found[id(value)] = _estimate(f"{type(owner).__name__}.{name}", value)
    return sorted(
        (one for one in found.values() if one.num_objects), key=lambda one: one.private_bytes, reverse=True
    )


def _is_object_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.size >= MIN_OBJECTS


def _estimate(path: str, container: Any) -> HeldObjects:
    flat = container.reshape(-1) if isinstance(container, np.ndarray) else container
    step = max(1, len(flat) // _SAMPLED)
    entries = flat.items() if isinstance(flat, dict) else zip(flat, strict=True)
    sample = list(islice(entries, 0, None, step))
    seen: set[int] = set()
    counted = [_objects(part, seen) for entry in sample for part in entry]
    scale = len(flat) / len(sample)
    return HeldObjects(
        path=path,
        kind=f"{type(container).__name__} of {type(sample[0][-1]).__name__}",
        num_objects=round(scale * sum(count for count, _ in counted)),
        private_bytes=round(scale * sum(size for _, size in counted)),
    )


def _objects(value: Any, seen: set[int], depth: int = _DEPTH) -> tuple[int, Bytes]:
    """Objects and their bytes, those inside of containers included; what several share counts once, small numbers not at all."""
    if value is None or isinstance(value, (bool, type)) or (isinstance(value, int) and -5 <= value <= 256):
        return 0, 0
    if id(value) in seen:
        return 0, 0
    seen.add(id(value))
    count, size = 1, sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        size -= value.nbytes if value.base is None else 0
    elif isinstance(value, (str, bytes)):
        size = min(size, _PAGE_BYTES)
    elif isinstance(value, _CONTAINERS) and depth:
        inner: Iterable[Any] = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        for part in inner:
            more, bytes_more = _objects(part, seen, depth - 1)
            count, size = count + more, size + bytes_more
    return count, size
