"""The advisers: one function per kind of break, each in a file of `kinds`; a new file there is found by itself.

An adviser looks at one break's `Site` and says what to write instead, or nothing. It is asked about breaks with the ids it
was registered for; one that was registered without ids knows its breaks by the code, and is asked about all.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from pyrometer.advice import Advice
from pyrometer.compiler.advice.site import Site

Adviser: TypeAlias = Callable[[Site], list[Advice]]


class Kind(NamedTuple):
    """One kind of break."""

    name: str
    ids: frozenset[str]
    """torch's ids; empty for kinds that are known by their code."""
    advise: Adviser
    rank: int
    """Kinds with a smaller rank stand first in the advice."""


_KINDS: dict[str, Kind] = {}


def advises(*ids: str, rank: int = 1) -> Callable[[Adviser], Adviser]:
    """Register an adviser under its function's name.

    Args:
        *ids: torch's stable ids of the breaks it is for; none for all.
        rank: advice of a smaller rank stands first.

    Raises:
        ValueError: there is one of that name already; both are named.
    """

    def register(adviser: Adviser) -> Adviser:
        name = adviser.__name__
        if name in _KINDS:
            raise ValueError(
                f"adviser {name!r} is defined in {_KINDS[name].advise.__module__} and in {adviser.__module__}; rename one"
            )
        _KINDS[name] = Kind(name, frozenset(ids), adviser, rank)
        return adviser

    return register


@cache
def kinds() -> tuple[Kind, ...]:
    """All kinds, those that stand first in the advice first.

    >>> "data_dependent_if" in [kind.name for kind in kinds()]
    True
    """
    package = importlib.import_module("pyrometer.compiler.advice.kinds")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(_KINDS.values(), key=lambda kind: (kind.rank, kind.name)))


def advised_ids() -> frozenset[str]:
    """Every id of torch's that some adviser is registered for.

    >>> "gb0170" in advised_ids()
    True
    """
    return frozenset().union(*(kind.ids for kind in kinds()))
