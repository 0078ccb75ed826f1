"""Who holds memory at one instant, added up by site."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.snapshots.categories import Categories
from pyrometer.memory.snapshots.lifetimes import BEFORE, Lifetimes
from pyrometer.memory.snapshots.sites import BEFORE_SITE, Site
from pyrometer.memory.snapshots.snapshot import NO_STACK
from pyrometer.quantity import counted

MAX_SITES = 200


@dataclass(frozen=True)
class Holders:
    """Everything that is needed to name who holds what."""

    lifetimes: Lifetimes
    categories: Categories
    sites: list[Site]

    def after(self, event: int, most: int = MAX_SITES) -> list[HeldBytes]:
        """Sites in use after an event, most bytes first; beyond `most`, the rest in one entry."""
        alive = np.flatnonzero(self.lifetimes.in_use_after(event))
        return self._added_up(alive, most)

    def ledger(self, event: int) -> dict[str, int]:
        """Bytes by category after an event."""
        alive = self.lifetimes.in_use_after(event)
        sums = np.zeros(len(CATEGORIES), np.int64)
        np.add.at(sums, self.categories.of[alive], self.lifetimes.size[alive])
        return {name: int(total) for name, total in zip(CATEGORIES, sums, strict=True) if total}

    def _added_up(self, alive: npt.NDArray[np.int64], most: int) -> list[HeldBytes]:
        names, site_of = self._names(alive)
        size = self.lifetimes.size[alive]
        total = np.zeros(len(names), np.int64)
        count = np.zeros(len(names), np.int64)
        by_category = np.zeros((len(names), len(CATEGORIES)), np.int64)
        np.add.at(total, site_of, size)
        np.add.at(count, site_of, 1)
        np.add.at(by_category, (site_of, self.categories.of[alive]), size)
        order = np.argsort(-total, kind="stable")
        held = [
            HeldBytes(
                site=names[i].name,
                bytes=int(total[i]),
                count=int(count[i]),
                operator=names[i].operator,
                category=CATEGORIES[int(by_category[i].argmax())],
                function=names[i].function,
            )
            for i in order[:most].tolist()
        ]
        rest = order[most:]
        if len(rest):
            name = f"({counted(len(rest), 'other site')})"
            held.append(HeldBytes(site=name, bytes=int(total[rest].sum()), count=int(count[rest].sum())))
        return held

    def _names(self, alive: npt.NDArray[np.int64]) -> tuple[list[Site], npt.NDArray[np.int64]]:
        """Distinct sites, and which of them each allocation belongs to."""
        stack = self.lifetimes.stack[alive]
        unseen = (stack == NO_STACK) & (self.lifetimes.made[alive] == BEFORE)
        number: dict[str, int] = {}
        sites: list[Site] = []
        distinct, where = np.unique(np.where(unseen, -1, stack), return_inverse=True)
        of = np.zeros(len(distinct), np.int64)
        for i, one in enumerate(distinct.tolist()):
            site = Site(BEFORE_SITE) if one < 0 else self.sites[one]
            if site.name not in number:
                number[site.name] = len(sites)
                sites.append(site)
            of[i] = number[site.name]
        return sites, of[where]
