"""Who holds bytes at an instant, as a tree: category, module, line. The children of every node add up to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.place import HeldBytes
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.report.facts.trace_words import short_path

NodeKind: TypeAlias = Literal["whole", "category", "module", "line", "instance", "rest"]

OTHER = "of no known category"
OUTSIDE = "outside of modules"
SMALLER = "not told by place"
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


class HeldNode(Record, frozen=True, kw_only=True):
    """One part of what is held."""

    parent: Annotated[int, doc("index of the node that it is a part of; -1 for the whole")]
    kind: NodeKind
    name: str
    bytes: Bytes
    count: Annotated[int, doc("allocations; 0 where it is not known")] = 0
    category: Annotated[str, doc("that gives its colour")] = ""
    note: Annotated[str, doc("the line's text, or what the part is")] = ""


class HeldPlaces(Record, frozen=True, kw_only=True):
    """The places of which the tree is made; all columns are equally long."""

    node: Annotated[list[int], doc("index of the node that the place is, or is a part of")]
    site: list[str]
    bytes: list[Bytes]
    share: Annotated[list[float], doc("of the whole")]
    count: list[int]
    category: list[str | None]
    module: list[str | None]
    function: list[str | None]
    source: list[str | None]
    operator: list[str | None]
    dtype: list[str | None]


class Holding(Record, frozen=True, kw_only=True):
    """What was held at one instant."""

    label: Annotated[str, doc("when: at the peak, at the end, …")]
    nodes: Annotated[list[HeldNode], doc("the whole first; the parts of a node with the largest first")]
    places: HeldPlaces
    mixed: Annotated[
        bool,
        doc(
            "lines with bytes of several categories count to the largest, so that sums differ from the ledger"
        ),
    ] = False


def holding(
    label: str, whole: Bytes, ledger: Mapping[str, Bytes], places: Sequence[HeldBytes]
) -> Holding | None:
    """The tree of some places; `None` where nothing is held.

    Args:
        label: when it was.
        whole: all bytes that were held; never less than those of the places are taken.
        ledger: bytes by category, where they are known: categories without a place are told from it.
        places: which hold it; a record need not have all.

    >>> place = HeldBytes(site="a.py:3", bytes=6, count=2, category="inputs")
    >>> [(node.name, node.bytes) for node in holding("at the peak", 8, {"inputs": 8}, [place]).nodes]
    [('all', 8), ('inputs', 6), ('a.py:3', 6), ('not told by place', 2)]
    """
    whole = max(whole, sum(place.bytes for place in places))
    if not whole:
        return None
    tree = _Tree(whole)
    groups = _grouped(places, lambda held: held.category or OTHER)
    for category, group in groups:
        tree.add_category(category, group)
    tree.add_rest(ledger, {category for category, _ in groups})
    more = [name for name, group in groups if sum(held.bytes for held in group) > ledger.get(name, 0)]
    return Holding(
        label=label, nodes=tree.nodes, places=_columns(tree.placed, whole), mixed=bool(ledger and more)
    )


def module_pattern(module: str | None) -> str:
    """A module with the numbers of its path left open, so that repeated blocks are one.

    >>> module_pattern("blocks.3.mlp.0"), module_pattern(None)
    ('blocks.*.mlp.*', '')
    """
    return _NUMBER.sub("*", module or "")


class _Tree:
    """Collects nodes in the order in which they are shown."""

    def __init__(self, whole: Bytes) -> None:
        self.nodes = [HeldNode(parent=-1, kind="whole", name="all", bytes=whole)]
        self.placed: list[tuple[int, HeldBytes]] = []
        self._category = ""

    def add_category(self, category: str, group: list[HeldBytes]) -> None:
        """A category with its modules, their lines, and the instances of a repeated module."""
        self._category = category
        top = self._add(0, "category", category, group)
        modules = _grouped(group, lambda held: module_pattern(held.module))
        for pattern, part in modules:
            # A level that says nothing is left out.
            plain = len(modules) == 1 and not pattern
            above = top if plain else self._add(top, "module", pattern or OUTSIDE, part)
            for site, lines in _grouped(part, lambda held: held.site):
                self._add_line(above, site, lines)

    def add_rest(self, ledger: Mapping[str, Bytes], placed: Container[str]) -> None:
        """What no place tells: whole categories first, then what is left."""
        left = self.nodes[0].bytes - sum(node.bytes for node in self.nodes if node.parent == 0)
        for name in CATEGORIES:
            held = ledger.get(name, 0)
            if name not in placed and 0 < held <= left:
                self._add_untold(name, held, name, "no place is known")
                left -= held
        if left:
            self._add_untold(
                SMALLER, left, "", "places too small for the record, or bytes whose place is unknown"
            )

    def _add_line(self, above: int, site: str, lines: list[HeldBytes]) -> None:
        note = lines[0].source or lines[0].operator or ""
        note = "" if note == site else note
        line = self._add(above, "line", short_path(site), lines, note)
        if len(lines) == 1:
            self.placed.append((line, lines[0]))
            return
        for held in sorted(lines, key=lambda one: -one.bytes):
            self.placed.append((self._add(line, "instance", held.module or OUTSIDE, [held], note), held))

    def _add(self, parent: int, kind: NodeKind, name: str, group: list[HeldBytes], note: str = "") -> int:
        node = HeldNode(
            parent=parent,
            kind=kind,
            name=name,
            bytes=sum(held.bytes for held in group),
            count=sum(held.count for held in group),
            category=self._category,
            note=note,
        )
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _add_untold(self, name: str, held: Bytes, category: str, note: str) -> None:
        node = HeldNode(parent=0, kind="rest", name=name, bytes=held, category=category, note=note)
        self.nodes.append(node)


def _grouped(
    places: Iterable[HeldBytes], key: Callable[[HeldBytes], str]
) -> list[tuple[str, list[HeldBytes]]]:
    groups: dict[str, list[HeldBytes]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return sorted(groups.items(), key=lambda item: (-sum(held.bytes for held in item[1]), item[0]))


def _columns(placed: Sequence[tuple[int, HeldBytes]], whole: Bytes) -> HeldPlaces:
    ordered = sorted(placed, key=lambda item: -item[1].bytes)
    places = [held for _, held in ordered]
    return HeldPlaces(
        node=[node for node, _ in ordered],
        site=[place.site for place in places],
        bytes=[place.bytes for place in places],
        share=[place.bytes / whole for place in places],
        count=[place.count for place in places],
        category=[place.category for place in places],
        module=[place.module or None for place in places],
        function=[place.function for place in places],
        source=[place.source for place in places],
        operator=[place.operator for place in places],
        dtype=[place.dtype for place in places],
    )
