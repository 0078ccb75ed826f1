"""One recorded training step as checkpointing sees it: what was made when, what autograd kept for whom, what ran when.

Every happening has a tick of one clock: allocations, ends of lives, saving for the backward pass, and the begin and end
of modules. All of it is plain data, so that models of other steps are built from it without running anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyrometer.quantity import Bytes


@dataclass(slots=True)
class Storage:
    """An allocation, with the end that its life has when autograd does not keep it."""

    nbytes: Bytes
    born: int
    died: int
    operator: str
    made: bool
    """By an operator of this step; others were there before."""


@dataclass(slots=True)
class Slot:
    """One tensor that autograd saved for one node of the backward pass."""

    storage: int | None
    """What it keeps alive; `None` for what is alive anyway, such as a parameter."""
    packed: int
    calls: tuple[int, ...]
    """Calls of modules that were running, the outermost first."""
    unpacked: int | None = None
    released: int | None = None


@dataclass(slots=True)
class Call:
    """One call of a module's forward."""

    module: str
    begin: int
    inside: tuple[int, ...]
    """Calls around this one."""
    end: int = 0
    inputs: tuple[int, ...] = ()
    """Storages of this step among the arguments, which checkpointing would hold."""


@dataclass(slots=True)
class StepTrace:
    """A recorded step.

    Attributes:
        storages: every storage that was seen.
        slots: what autograd saved.
        calls: of all modules but the model itself, in the order in which they began.
        end: the last tick.
        unfit: modules that must not be computed again, and why.
        written: by module, its own buffers that its forward writes to.
        peak_bytes: of the step as it is.
        notes: what could not be followed.
    """

    storages: list[Storage] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    end: int = 0
    unfit: dict[str, str] = field(default_factory=dict)
    written: dict[str, list[str]] = field(default_factory=dict)
    peak_bytes: Bytes = 0
    notes: list[str] = field(default_factory=list)

    def released(self, slot: Slot) -> int:
        """Up to when autograd held what it saved; beyond the end where it was not let go of."""
        return slot.released if slot.released is not None else self.end + 1

    def calls_of(self, module: str) -> list[int]:
        """Indices of a module's calls."""
        return [index for index, call in enumerate(self.calls) if call.module == module]

    def around(self, module: str) -> set[str]:
        """Modules that a module was called in."""
        return {
            self.calls[outer].module
            for call in self.calls
            if call.module == module
            for outer in call.inside
            if self.calls[outer].module != module
        }

    def within(self, module: str) -> set[str]:
        """Modules that were called in a module, and itself."""
        calls = set(self.calls_of(module))
        return {module} | {call.module for call in self.calls if calls.intersection(call.inside)}

    def saved_bytes(self, module: str) -> Bytes:
        """Bytes of storages made inside of a module that autograd keeps for nodes inside of it."""
        calls = set(self.calls_of(module))
        kept = {
            slot.storage for slot in self.slots if slot.storage is not None and calls.intersection(slot.calls)
        }
        return sum(
            self.storages[index].nbytes
            for index in kept
            if any(
                self.calls[call].begin < self.storages[index].born <= self.calls[call].end for call in calls
            )
        )
