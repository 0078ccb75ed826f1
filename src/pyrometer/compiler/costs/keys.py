"""Keys of torch's compile caches: the parts that they are made of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

_COMPONENT = re.compile(
    r"\[(?P<hash>\w+)\] (?P<group>\w+)(?:\[(?P<item>[^\]]*)\])?: ?(?P<value>.*)", re.DOTALL
)

INPUTS = "example_inputs"


class Component(NamedTuple):
    """One part of a key: `[hash] group[item]: value`."""

    group: str
    item: str
    hash: str
    value: str


class Key:
    """The parts of a cache key."""

    def __init__(self, components: Iterable[str]) -> None:
        self._groups: dict[str, list[Component]] = defaultdict(list)
        for text in components:
            match = _COMPONENT.match(text)
            if match is not None:
                component = Component(match["group"], match["item"] or "", match["hash"], match["value"])
                self._groups[component.group].append(component)

    def __bool__(self) -> bool:
        return bool(self._groups)

    @property
    def groups(self) -> Mapping[str, Sequence[Component]]:
        """The parts by their group, such as `inductor_config`; a part that stands alone is its own group."""
        return self._groups

    @cached_property
    def settings(self) -> dict[str, str]:
        """Inductor's settings as text."""
        return {part.item: part.value for part in self._groups.get("inductor_config", ())}

    def option(self, name: str) -> str:
        """What Inductor was told about the graph, such as whether it is a backward; empty when not told."""
        return next((part.value for part in self._groups.get("fx_kwargs", ()) if part.item == name), "")

    @cached_property
    def _contents(self) -> frozenset[tuple[str, str | int, str]]:
        """Of inputs not where they stand but the how-manieth of its kind each is."""
        seen: Counter[str] = Counter()
        found: set[tuple[str, str | int, str]] = set()
        for group, parts in self._groups.items():
            for part in parts:
                seen[part.hash] += group == INPUTS
                found.add((group, seen[part.hash] if group == INPUTS else part.item, part.hash))
        return frozenset(found)

    def distance(self, key: Key) -> int:
        """How many parts two keys do not share, wherever inputs stand."""
        return len(self._contents ^ key._contents)
