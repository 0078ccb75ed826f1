"""Leaving a dataset as it was found, although fetching samples may change it."""

from __future__ import annotations

import contextlib
import copy
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from pyrometer.workload.state import preserved_rng

MAX_ENTRIES = 2_000_000
_CONTAINERS = (dict, list, set, OrderedDict, defaultdict, deque)
_LINKS = (
    "dataset",
    "datasets",
    "transform",
    "transforms",
    "target_transform",
    "sampler",
    "batch_sampler",
    "generator",
)


@contextlib.contextmanager
def preserved_objects(roots: Iterable[Any]) -> Iterator[list[str]]:
    """Restore datasets, transforms and samplers, and the random state of Python, NumPy and torch.

    Restored are attributes (a file that was opened when first needed is let go of again), entries of containers among them one
    level deep, and random generators. Containers of more than two million entries are not copied, hence not restored. Not
    restored is what lies elsewhere: files, positions in files, other processes, caches of modules.

    Yields:
        A list that is filled at the end with the names of what had changed.
    """
    owners = linked_objects(roots)
    kept = [(owner, dict(vars(owner))) for owner in owners if hasattr(owner, "__dict__")]
    values = [value for _, attributes in kept for value in attributes.values()] + list(owners)
    entries = [
        (value, copy.copy(value))
        for value in _each_once(values)
        if type(value) in _CONTAINERS and len(value) <= MAX_ENTRIES
    ]
    generators = [(value, state_setter(value)) for value in _each_once(values)]
    changed: list[str] = []
    with preserved_rng():
        try:
            yield changed
        finally:
            for owner, attributes in kept:
                changed += _restore_attributes(owner, attributes)
            for container, before in entries:
                if _differs(container, before):
                    changed.append(f"the contents of a {type(container).__name__}")
                    _refill(container, before)
            for _, restore in generators:
                if restore is not None:
                    restore()


def linked_objects(roots: Iterable[Any]) -> list[Any]:
    """Datasets with the datasets inside of them, their transforms and samplers; each once."""
    found: dict[int, Any] = {}
    waiting = list(roots)
    while waiting and len(found) < 1000:
        one = waiting.pop(0)
        if (
            id(one) in found
            or isinstance(one, (type, torch.Tensor, np.ndarray, str, int, float))
            or one is None
        ):
            continue
        found[id(one)] = one
        for name, inner in getattr(one, "__dict__", {}).items():
            leads_on = isinstance(inner, Dataset) or is_steps(
                getattr(inner, "__dict__", {}).get("transforms")
            )
            if leads_on or name in _LINKS:
                waiting.append(inner)
                waiting += list(inner) if isinstance(inner, (list, tuple)) and len(inner) < 1000 else []
    return list(found.values())


def is_steps(value: Any) -> bool:
    """Whether it is a sequence of callables.

    >>> is_steps([str.strip]), is_steps(["strip"]), is_steps([])
    (True, False, False)
    """
    return isinstance(value, (list, tuple)) and bool(value) and all(map(callable, value))


def state_setter(generator: Any) -> Callable[[], Any] | None:
    """What brings a random generator back to its present state; `None` for anything else."""
    if isinstance(generator, np.random.Generator):
        bits: Any = generator.bit_generator
        state = bits.state
        return lambda: setattr(bits, "state", state)
    if isinstance(generator, np.random.RandomState):
        legacy = generator.get_state()
        return lambda: generator.set_state(legacy)
    if isinstance(generator, random.Random):
        plain = generator.getstate()
        return lambda: generator.setstate(plain)
    if isinstance(generator, torch.Generator):
        tensor = generator.get_state()
        return lambda: generator.set_state(tensor)
    return None


def seed_all(seed: int) -> None:
    """Seed the global generators of Python, NumPy and torch's CPU; the caller restores them.

    Not by `torch.manual_seed`: that seeds accelerators too, also later when they are first used.
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the legacy global state is what datasets draw from
    torch.default_generator.manual_seed(seed)


def _each_once(values: Iterable[Any]) -> list[Any]:
    return list({id(value): value for value in values}.values())


def _restore_attributes(owner: Any, before: dict[str, Any]) -> list[str]:
    now = vars(owner)
    changed = [name for name in {*now, *before} if now.get(name, before) is not before.get(name, now)]
    if changed:
        for name in changed:
            now.pop(name, None)
        now.update({name: before[name] for name in changed if name in before})
    return sorted(f"{type(owner).__name__}.{name}" for name in changed)


def _differs(container: Any, before: Any) -> bool:
    if len(container) != len(before):
        return True
    if isinstance(container, dict):
        return any(key not in container or container[key] is not value for key, value in before.items())
    if isinstance(container, set):
        return bool(container != before)
    return any(now is not kept for now, kept in zip(container, before, strict=True))


def _refill(container: Any, before: Any) -> None:
    container.clear()
    (container.update if isinstance(container, (dict, set)) else container.extend)(before)
