"""From a recorded step, and measured times, to the model that plans are made with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pyrometer.quantity import Bytes, Seconds
from pyrometer.tuning.checkpointing.model import Again, Burst, Hold, Kept, Option, StepModel
from pyrometer.tuning.checkpointing.trace import Slot, StepTrace
from pyrometer.workload.changes.policies import Policy, kept_operators


@dataclass(frozen=True)
class OptionCost:
    """What checkpointing one module adds to a step."""

    module: str
    policy: Policy
    seconds: Seconds


def step_model(trace: StepTrace, costs: Sequence[OptionCost]) -> StepModel:
    """The model of a recorded step with these options."""
    return _Builder(trace, costs).model()


class _Builder:
    def __init__(self, trace: StepTrace, costs: Sequence[OptionCost]) -> None:
        self.trace = trace
        self.costs = costs
        self.modules = list(dict.fromkeys(cost.module for cost in costs))
        self.number = {module: index for index, module in enumerate(self.modules)}
        self.slots_of: dict[int, list[Slot]] = defaultdict(list)
        for slot in trace.slots:
            for call in slot.calls:
                self.slots_of[call].append(slot)
        # Levels are highest right after something was made, or computed again.
        starts = [storage.born for storage in trace.storages]
        starts += [slot.unpacked for slot in trace.slots if slot.unpacked is not None]
        self.ticks = np.unique(np.array(starts or [0], dtype=np.int64))

    def model(self) -> StepModel:
        holds = [
            Hold(slot.storage, self._at(self.trace.released(slot)), self._covering(slot))
            for slot in self.trace.slots
            if slot.storage is not None
        ]
        options = [self._option(cost) for cost in self.costs]
        varying = {hold.storage for hold in holds} | {
            kept.storage for option in options for kept in option.kept
        }
        place = {storage: row for row, storage in enumerate(sorted(varying))}
        chosen = [self.trace.storages[storage] for storage in sorted(varying)]
        return StepModel(
            fixed=self._fixed(varying),
            nbytes=np.array([storage.nbytes for storage in chosen], dtype=np.int64),
            since=np.array([self._at(storage.born) for storage in chosen], dtype=np.int64),
            natural=np.array([self._at(storage.died) for storage in chosen], dtype=np.int64),
            holds=tuple(Hold(place[hold.storage], hold.until, hold.modules) for hold in holds),
            options=tuple(
                replace(option, kept=tuple(Kept(place[kept.storage], kept.until) for kept in option.kept))
                for option in options
            ),
            conflicts=frozenset(self._conflicts()),
        )

    def _at(self, tick: int) -> int:
        """The first time that is not before a tick."""
        return int(np.searchsorted(self.ticks, tick))

    def _covering(self, slot: Slot) -> frozenset[int]:
        """Candidates whose checkpointing would let go of what is saved here."""
        assert slot.storage is not None
        storage = self.trace.storages[slot.storage]
        covering = set()
        for index in slot.calls:
            call = self.trace.calls[index]
            # What comes from outside, and not as an argument, is held by the closure.
            known = storage.born > call.begin or slot.storage in call.inputs
            if known and call.module in self.number:
                covering.add(self.number[call.module])
        return frozenset(covering)

    def _fixed(self, varying: set[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        changes = np.zeros(len(self.ticks) + 1, dtype=np.int64)
        for index, storage in enumerate(self.trace.storages):
            if index not in varying:
                changes[self._at(storage.born)] += storage.nbytes
                changes[self._at(storage.died)] -= storage.nbytes
        return np.cumsum(changes[:-1])

    def _conflicts(self) -> set[tuple[int, int]]:
        pairs = set()
        for call in self.trace.calls:
            inner = self.number.get(call.module)
            for around in call.inside:
                outer = self.number.get(self.trace.calls[around].module)
                if inner is not None and outer is not None and inner != outer:
                    pairs |= {(inner, outer), (outer, inner)}
        return pairs

    def _option(self, cost: OptionCost) -> Option:
        kept: list[Kept] = []
        again: list[Again] = []
        bursts: list[Burst] = []
        for call in self.trace.calls_of(cost.module):
            replay = _Replay(self.trace, call, self.slots_of[call], kept_operators(cost.policy))
            if replay.at is None:
                continue
            since = self._at(replay.at)
            kept += [Kept(s, self._at(replay.end)) for s in self.trace.calls[call].inputs]
            kept += [Kept(s, self._at(until)) for s, until in replay.kept()]
            again += [Again(nbytes, since + 1, self._at(until)) for nbytes, until in replay.lasting()]
            bursts.append(Burst(since, replay.highest()))
        return Option(
            self.number[cost.module],
            cost.policy,
            cost.seconds,
            tuple(kept),
            tuple(recomputation for recomputation in again if recomputation.until > recomputation.since),
            tuple(bursts),
        )


class _Replay:
    """One call of a module, computed again up to the last tensor that autograd saved in it."""

    def __init__(self, trace: StepTrace, call: int, slots: list[Slot], operators: frozenset[str]) -> None:
        begin = trace.calls[call].begin
        stop = max((slot.packed for slot in slots), default=begin)
        self.at = min((slot.unpacked for slot in slots if slot.unpacked is not None), default=None)
        """When it is computed again; `None` when nothing of it is needed."""
        self.end = max(map(trace.released, slots), default=begin)
        made = [
            (index, storage)
            for index, storage in enumerate(trace.storages)
            if storage.made and begin < storage.born <= trace.calls[call].end
        ]
        self._kept = [index for index, storage in made if storage.operator in operators]
        keeps = set(self._kept)
        self._made = [
            (index, storage) for index, storage in made if index not in keeps and storage.born <= stop
        ]
        self._stop = stop
        self._last: dict[int, int] = {}
        for slot in slots:
            if slot.storage is not None:
                self._last[slot.storage] = max(self._last.get(slot.storage, 0), trace.released(slot))

    def kept(self) -> list[tuple[int, int]]:
        """Storages that the policy keeps, and up to when."""
        assert self.at is not None
        return [(index, max(self.at, self._last.get(index, 0))) for index in self._kept]

    def lasting(self) -> list[tuple[Bytes, int]]:
        """What autograd wants of it: bytes, and up to when."""
        return [(storage.nbytes, self._last[index]) for index, storage in self._made if index in self._last]

    def highest(self) -> Bytes:
        """The most bytes that are alive while it is computed again."""
        changes: list[tuple[int, Bytes]] = []
        for index, storage in self._made:
            changes.append((storage.born, storage.nbytes))
            if index not in self._last and storage.died <= self._stop:
                changes.append((storage.died, -storage.nbytes))
        level = highest = 0
        for _, change in sorted(changes):
            level += change
            highest = max(highest, level)
        return highest
