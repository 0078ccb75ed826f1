"""What was allocated and freed, in order: the log that every reading of it starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pyrometer.memory.category import Category
from pyrometer.quantity import Bytes
from pyrometer.workload.whereabouts.lines import CodePoint


class Origin(NamedTuple):
    """Where an allocation comes from."""

    operator: str
    point: CodePoint | None
    """The nearest line that is not torch's; in the backward pass that of the forward operator."""
    module: str | None
    """Path of the module whose forward was running; in the backward pass of the forward operator."""
    node: str | None = None
    """The autograd node that was being evaluated."""


@dataclass(slots=True)
class Allocation:
    """One storage, from its birth to its death."""

    nbytes: Bytes
    born: int  # number of the event; before the first one for what was there already
    origin: Origin
    dtype: str
    step: int = 0
    phase: str = ""
    died: int | None = None
    category: Category | None = None
    """What it is known to be by its identity: a parameter, a gradient, …"""
    saved: bool = False
    """Autograd keeps, or kept, it for the backward pass."""
    recomputed: bool = False
    """Made in the backward pass with gradients recorded, as activation checkpointing does."""
    preexisting: bool = False
    """It was there before the recording, and was first seen as an operator's argument or by registration."""

    @property
    def settled(self) -> Category:
        """The category, by what is known of it, or else by what became of it."""
        if self.category is not None:
            return self.category
        if self.saved or self.recomputed:
            return "activations"
        if self.phase in {"data", "h2d"}:
            return "inputs"  # also what was there before, such as a dataset that lies in memory
        return "unknown" if self.preexisting else "temporaries"

    def alive_after(self, event: int) -> bool:
        """Whether it holds memory right after an event."""
        return self.born <= event and (self.died is None or self.died > event)


@dataclass(slots=True)
class PhaseEnd:
    """The end of a phase: the events before `event`, back to the end before, belong to it."""

    event: int
    name: str
    step: int


@dataclass(slots=True)
class AllocationLog:
    """Allocations and frees of one recording.

    Attributes:
        allocations: every storage that was seen.
        events: `i` where allocation `i` was made, `~i` where it was freed.
        phases: where phases ended.
        notes: what could not be followed, and why.
        live_bytes: what is alive now.
        peak_bytes: the most that was ever alive.
        peak_event: the event after which that was.

    A storage that is resized is freed and made anew.
    """

    allocations: list[Allocation] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    phases: list[PhaseEnd] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    live_bytes: Bytes = 0
    peak_bytes: Bytes = 0
    peak_event: int = -1

    def born(self, allocation: Allocation) -> int:
        """Add an allocation that was just made; returns its index."""
        index = len(self.allocations)
        allocation.born = len(self.events)
        self.allocations.append(allocation)
        self.events.append(index)
        self.live_bytes += allocation.nbytes
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_event = self.live_bytes, allocation.born
        return index

    def died(self, index: int) -> None:
        """Note that an allocation was freed."""
        allocation = self.allocations[index]
        allocation.died = len(self.events)
        self.events.append(~index)
        self.live_bytes -= allocation.nbytes

    def end_phase(self, name: str, step: int) -> None:
        """What was allocated since the last phase ended belongs to this one."""
        begin = self.phases[-1].event if self.phases else 0
        for index in self.events[begin:]:
            if index >= 0 and not self.allocations[index].phase:
                self.allocations[index].phase, self.allocations[index].step = name, step
        self.phases.append(PhaseEnd(len(self.events), name, step))

    def live_at(self, event: int) -> list[Allocation]:
        """What held memory right after an event."""
        return [allocation for allocation in self.allocations if allocation.alive_after(event)]
