"""A lever with its parameters, and a configuration of several: what is stored and shown, without the levers themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from pyrometer.record import Record, doc


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


def key_of(configuration: Sequence[LeverChoice]) -> str:
    """Twelve hexadecimal digits that tell configurations apart."""
    plain = json.dumps([[choice.lever, choice.parameters] for choice in configuration], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:12]


def label_of(configuration: Sequence[LeverChoice]) -> str:
    """The levers by name, or `baseline` where there are none."""
    return " + ".join(choice.label for choice in configuration) or "baseline"
