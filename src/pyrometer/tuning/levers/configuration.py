"""Putting configurations together: the order of levers, what excludes what, and what falls with a lever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrometer.tuning.levers.choice import Configuration, LeverChoice
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.levers.stages import PLACES


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
