"""What each sample is a sample of: time seen at a point is given to what ran before it, as the watched step tells.

A look happens where Python handles signals: at the end of a call, at the entry of a function, at the end of a round of a loop.
`y = a @ b` has none of these, and its time is seen at the next one. For each point the watched step knows what lay before it, and
the samples of the point are divided in that proportion. Where nothing is known of a point, its samples stay with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from pyrometer.host.library_names import Library
from pyrometer.host.samples import Beside, HostSamples, Stack
from pyrometer.source.ownership import Owner, owner_of

NOWHERE = -1

SLOW_NS = 1_200.0
"""Above this an operation is none of Python's own, on any machine of today."""

LIGHT = ("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE", "STORE_", "POP_", "PUSH_", "JUMP_", "RESUME", "SWAP", "COPY", "NOP")  # fmt: skip
"""Instructions that seldom cost anything."""


class Share(NamedTuple):
    """A part of the samples: its time in ns, the user's instructions on the stack, innermost first, and libraries above them."""

    ns: float
    spots: tuple[int, ...]
    above: tuple[Library, ...]
    garbage: bool


class Other(NamedTuple):
    """Where another thread of the program was: the user's instructions, and libraries above them."""

    thread: int
    spots: tuple[int, ...]
    above: tuple[Library, ...]


class Attribution:
    """Divides samples among the user's instructions."""

    def __init__(self, samples: HostSamples) -> None:
        self._samples = samples

    @cached_property
    def owners(self) -> list[Owner]:
        """Whose each code is."""
        return [owner_of(code.file, code.name.rpartition(".")[2]) for code in self._samples.codes]

    def owner(self, spot: int) -> Owner:
        """Whose an instruction is."""
        return self.owners[self._samples.places[spot].code]

    @cached_property
    def _before(self) -> dict[tuple[int, int], Mapping[int, int]]:
        """Points with what ran before them, in ns; all points between the user's code and ours are one."""
        found: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for point, below, spot, ns, _ in self._samples.stretches:
            ours = point == NOWHERE or (below == NOWHERE and self.owner(point) == "ours")
            found[NOWHERE if ours else point, below][spot] += ns
        return {point: self._weighty(parts) for point, parts in found.items()}

    def _weighty(self, parts: Mapping[int, int]) -> Mapping[int, int]:
        """Without loads, stores and jumps, of which a watch sees little but its own cost; unless they are all or slow."""
        places = self._samples.places
        kept = {
            spot: ns
            for spot, ns in parts.items()
            if self.mean_ns[spot] >= SLOW_NS or not places[spot].operation.startswith(LIGHT)
        }
        return kept or parts

    @cached_property
    def mean_ns(self) -> dict[int, float]:
        """How long an instruction takes each time, with what it calls that is not the user's."""
        spent: dict[int, int] = defaultdict(int)
        times: dict[int, int] = defaultdict(int)
        for stretch in self._samples.stretches:
            spent[stretch.spot] += stretch.ns
            times[stretch.spot] += stretch.times
        return {spot: spent[spot] / max(times[spot], 1) for spot in spent}

    def shares(self) -> Iterator[Share]:
        """All samples, divided; those without any instruction of the user's have no spots."""
        for stack in self._samples.stacks:
            yield from self._divided(stack)

    @cached_property
    def waits(self) -> dict[int, list[tuple[int, tuple[Other, ...]]]]:
        """By the user's instruction at which the sampled thread waits: where other threads were, and how often that was seen."""
        found: dict[int, list[tuple[int, tuple[Other, ...]]]] = defaultdict(list)
        for times, spots, others in self._samples.waits:
            users = [spot for spot in spots if self.owner(spot) == "user"]
            if users:
                found[users[0]].append((times, tuple(self._in_users(others))))
        return found

    def _in_users(self, others: Sequence[Beside]) -> Iterator[Other]:
        for thread, spots in others:
            users = tuple(spot for spot in spots if self.owner(spot) == "user")
            if users:
                yield Other(thread, users, self._libraries(spots[: spots.index(users[0])]))

    def _divided(self, stack: Stack) -> Iterator[Share]:
        spots = self._without_ours(stack.spots)
        users = tuple(spot for spot in spots if self.owner(spot) == "user")
        depth = spots.index(users[0]) if users else len(spots)
        above = self._libraries(spots[:depth])
        point = spots[0] if spots else NOWHERE
        below = users[0] if users and depth else NOWHERE
        if not users and not above:
            point = NOWHERE
        parts = {} if stack.garbage else self._before.get((point, below), {})
        total = sum(parts.values())
        if not total:
            yield Share(stack.ns, users, above, stack.garbage)
            return
        for spot, ns in parts.items():
            part = stack.ns * ns / total
            if spot == point:
                yield Share(part, users, (), garbage=False)
            else:
                yield Share(part, self._chain(spot, users), (), garbage=False)

    def _without_ours(self, spots: Sequence[int]) -> Sequence[int]:
        """Without what observes, where it lies above the program."""
        for depth, spot in enumerate(spots):
            if self.owner(spot) != "ours":
                return spots[depth:]
        return []

    def _libraries(self, spots: Sequence[int]) -> tuple[Library, ...]:
        codes = [
            self._samples.codes[self._samples.places[spot].code]
            for spot in spots
            if self.owner(spot) != "ours"
        ]
        return tuple(Library(code.file, code.name) for code in codes)

    def _chain(self, spot: int, users: tuple[int, ...]) -> tuple[int, ...]:
        """The stack of what ran before: in the same function, in the one that called it, or in one that had returned."""
        code = self._samples.places[spot].code
        for depth, user in enumerate(users[:2]):
            if self._samples.places[user].code == code:
                return (spot, *users[depth + 1 :])
        return (spot, *users)
