"""All levers by name: our own, and those that other packages bring by the entry point `pyrometer.levers`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from pyrometer.errors import InputError
from pyrometer.tuning.levers import families
from pyrometer.tuning.levers.lever import LeverOf, registered
from pyrometer.tuning.levers.stages import PLACES
from pyrometer.workload.target import nearest

ENTRY_POINT = "pyrometer.levers"


@functools.cache
def _load() -> None:
    """Import our own families, and what other packages announce."""
    for module in pkgutil.walk_packages(families.__path__, f"{families.__name__}."):
        importlib.import_module(module.name)
    for point in entry_points(group=ENTRY_POINT):
        try:
            point.load()
        except Exception as error:
            raise InputError(
                f"levers of {point.name} ({point.value}) cannot be loaded: {error}; fix or uninstall it"
            ) from error


def levers() -> dict[str, LeverOf[Any]]:
    """All levers by name, in the order in which they are applied."""
    _load()
    return dict(sorted(registered.items(), key=lambda item: (PLACES.index(item[1].place), item[0])))


def find_lever(name: str) -> LeverOf[Any]:
    """The lever of a name.

    Raises:
        InputError: there is none; says what is near.
    """
    known = levers()
    if name not in known:
        raise InputError(
            f"lever {name!r}: there is none of that name{nearest(name, known)}; `pyrometer tune --list` names all"
        )
    return known[name]


def select(only: Iterable[str], without: Iterable[str]) -> list[LeverOf[Any]]:
    """All levers, or `only` some, less those `without`.

    Raises:
        InputError: an unknown name.
    """
    wanted = [find_lever(name).name for name in only]
    refused = {find_lever(name).name for name in without}
    return [each for name, each in levers().items() if (not wanted or name in wanted) and name not in refused]
