"""What changed between two memory profiles: by category, and by the places that hold the peak."""

from __future__ import annotations

from typing import Annotated

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import MemoryProfile
from pyrometer.quantity import Bytes, Ratio
from pyrometer.record import Record, doc


class BytesChange(Record, frozen=True, kw_only=True):
    """One part, before and after."""

    name: Annotated[str, doc("a category, or file:line with the module")]
    before_bytes: Bytes
    after_bytes: Bytes

    @property
    def change_bytes(self) -> Bytes:
        """After minus before."""
        return self.after_bytes - self.before_bytes


class MemoryDiff(Record, frozen=True, kw_only=True):
    """A profile against an earlier one."""

    before_peak_bytes: Bytes
    after_peak_bytes: Bytes
    ratio: Annotated[Ratio, doc("after over before")]
    before_phase: str | None = None
    after_phase: str | None = None
    categories: Annotated[list[BytesChange], doc("those that changed, the largest change first")] = []
    sites: Annotated[
        list[BytesChange], doc("places whose share of the peak changed, the largest change first")
    ] = []
    notes: Annotated[list[str], doc("why the two may not be comparable")] = []


def diff_memory(before: MemoryProfile, after: MemoryProfile) -> MemoryDiff:
    """Put a profile beside an earlier one; lines are matched by file, line and module.

    >>> one = MemoryProfile(name="a", device="cpu", peak_bytes=10, ledger_bytes={"parameters": 10})
    >>> two = MemoryProfile(name="a", device="cpu", peak_bytes=15, ledger_bytes={"parameters": 10, "inputs": 5})
    >>> [(change.name, change.change_bytes) for change in diff_memory(one, two).categories]
    [('inputs', 5)]
    """
    return MemoryDiff(
        before_peak_bytes=before.peak_bytes,
        after_peak_bytes=after.peak_bytes,
        ratio=after.peak_bytes / max(before.peak_bytes, 1),
        before_phase=before.peak_phase,
        after_phase=after.peak_phase,
        categories=_changes(
            {name: before.ledger_bytes.get(name, 0) for name in CATEGORIES},
            {name: after.ledger_bytes.get(name, 0) for name in CATEGORIES},
        ),
        sites=_changes(_places(before), _places(after)),
        notes=_doubts(before, after),
    )


def _places(profile: MemoryProfile) -> dict[str, Bytes]:
    held: dict[str, Bytes] = {}
    for one in profile.at_peak:
        name = f"{one.site} in {one.module}" if one.module else one.site
        held[name] = held.get(name, 0) + one.bytes
    return held


def _changes(before: dict[str, Bytes], after: dict[str, Bytes]) -> list[BytesChange]:
    changes = [
        BytesChange(name=name, before_bytes=before.get(name, 0), after_bytes=after.get(name, 0))
        for name in {**before, **after}
        if before.get(name, 0) != after.get(name, 0)
    ]
    return sorted(changes, key=lambda change: (-abs(change.change_bytes), change.name))


def _doubts(before: MemoryProfile, after: MemoryProfile) -> list[str]:
    doubts = []
    for what, one, other in (
        ("program", before.name, after.name),
        ("device", before.device, after.device),
        ("units per step", before.units_per_step, after.units_per_step),
    ):
        if one != other:
            doubts.append(f"another {what}: {one} before, {other} after")
    return doubts
