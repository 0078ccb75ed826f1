"""A lever with its parameters, and a configuration of several."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeAlias

from pyrometer.record import Record, doc
from pyrometer.tuning.levers.lever import PLACES, Lever
from pyrometer.tuning.levers.registry import find_lever


class LeverChoice(Record, frozen=True, kw_only=True):
    """A lever with its parameters.

    >>> LeverChoice(lever="threads", parameters={"num": 2}).label
    'threads(num=2)'
    """

    lever: Annotated[str, doc("name of the lever")]
    parameters: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """Name and parameters."""
        listed = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.lever}({listed})" if listed else self.lever


Configuration: TypeAlias = tuple[LeverChoice, ...]
"""Levers in the order in which they are applied."""


def ordered(choices: Iterable[LeverChoice]) -> Configuration:
    """In the order in which they are applied, each lever once: a later choice of a lever replaces an earlier one."""
    latest = {choice.lever: choice for choice in choices}
    return tuple(
        sorted(
            latest.values(), key=lambda choice: (PLACES.index(find_lever(choice.lever).place), choice.lever)
        )
    )


def with_lever(configuration: Sequence[LeverChoice], choice: LeverChoice) -> Configuration:
    """The configuration with one more lever, in place of those that it excludes."""
    return ordered([*(kept for kept in configuration if not excluded(kept.lever, choice.lever)), choice])


def without_lever(configuration: Sequence[LeverChoice], name: str) -> Configuration:
    """The configuration without a lever, and without those that have no effect without it."""
    left = [
        choice
        for choice in configuration
        if choice.lever != name and name not in find_lever(choice.lever).needs
    ]
    return tuple(left)


def excluded(one: str, other: str) -> bool:
    """Whether two levers cannot be in one configuration."""
    return one != other and bool(find_lever(one).excludes & find_lever(other).excludes)


def lacks(lever: Lever, configuration: Sequence[LeverChoice]) -> frozenset[str]:
    """Levers that this one needs and a configuration does not have."""
    return lever.needs - {choice.lever for choice in configuration}


def key_of(configuration: Sequence[LeverChoice]) -> str:
    """Twelve hexadecimal digits that tell configurations apart."""
    plain = json.dumps([[choice.lever, choice.parameters] for choice in configuration], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:12]


def label_of(configuration: Sequence[LeverChoice]) -> str:
    """The levers by name, or `baseline` where there are none."""
    return " + ".join(choice.label for choice in configuration) or "baseline"
