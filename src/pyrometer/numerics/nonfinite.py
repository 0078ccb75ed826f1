"""Which values of a step are NaN or infinite, and from which operator they come.

Each operator's result is noted with the results that it was made from, known by the memory that they lie in. The
smallest and largest value of each are read together, many at a time, so that a device is not waited for at every
operator. From a value that is not finite the way back leads over results that are not finite either, to the operator
whose own inputs still were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from pyrometer.numerics.report import NonFinite
from pyrometer.numerics.tensors import has_values, memory_key
from pyrometer.place import Place
from pyrometer.workload.whereabouts.lines import CodePoint, site_of

FINE, NEGATIVE, POSITIVE, NAN = range(4)
"""What is the worst that a tensor holds: nothing, minus infinity, infinity, NaN."""

MASKS = frozenset(
    {"masked_fill", "masked_fill_", "full", "full_like", "fill", "fill_", "where", "scalar_tensor"}
)
"""Operators that write an infinity because they are told to, as masks of attention are made."""

READ_AT_ONCE = 1024

Source = Literal["operator", "input", "parameter", "unknown"]


@dataclass
class Made:
    """A tensor that a step was given or computed."""

    op: str
    source: Source
    name: str | None = None
    module: str | None = None
    point: CodePoint | None = None
    phase: str | None = None
    parents: Sequence[int] = ()
    before: int | None = None  # what lay in the same memory, where only a part of that was written
    state: int = FINE

    @property
    def place(self) -> Place:
        """Where it was made."""
        site = site_of(self.point) if self.point is not None else None
        return Place(
            file=site.file if site is not None else None,
            line=site.line if site is not None else None,
            function=site.function if site is not None else None,
            module=self.module,
            op=self.op or None,
            phase=self.phase,
        )


class StepTensors:
    """The tensors of one step."""

    def __init__(self) -> None:
        self.made: list[Made] = []
        self._known: dict[tuple[str, int], int] = {}
        self._pending: dict[tuple[torch.device, torch.dtype], list[tuple[int, torch.Tensor]]] = {}
        self._num_pending = 0

    def clear(self) -> None:
        """Forget everything, as a new step begins."""
        self.__init__()  # type: ignore[misc]

    def note(self, tensor: torch.Tensor, made: Made, *, written: bool = True) -> int | None:
        """Take a tensor in, unless it holds no floating-point numbers; one that is not written counts as finite."""
        if not has_values(tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
            return None
        key, index = memory_key(tensor), len(self.made)
        if tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes():
            made.before = self._known.get(key)
        self.made.append(made)
        self._known[key] = index
        if written:
            self._read_later(index, tensor.detach())
        return index

    def find(self, tensor: Any) -> int | None:
        """The last entry that wrote to a tensor's memory."""
        return self._known.get(memory_key(tensor)) if has_values(tensor) else None

    def parents_of(self, leaves: Iterable[Any]) -> tuple[int, ...]:
        """The entries of the tensors among some arguments; those that nobody noted so far are noted now."""
        notes = []
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                known = self.find(leaf)
                notes.append(self.note(leaf, Made("", "unknown")) if known is None else known)
        return tuple(dict.fromkeys(index for index in notes if index is not None))

    def read(self) -> None:
        """Learn the state of everything that was noted."""
        states: dict[int, int] = {}
        for entries in self._pending.values():
            pairs = torch.stack([pair for _, pair in entries]).tolist()
            states |= {index: _state(*pair) for (index, _), pair in zip(entries, pairs, strict=True)}
        for index in sorted(states):
            made = self.made[index]
            made.state = max(states[index], FINE if made.before is None else self.made[made.before].state)
        self._pending.clear()
        self._num_pending = 0

    def is_bad(self, index: int) -> bool:
        """Whether a tensor holds what it should not: anything not finite but the minus infinity of a mask."""
        state = self.made[index].state
        if state != NEGATIVE:
            return state != FINE
        origin, _ = self.origin(index)
        return origin.source == "operator" and origin.op.removeprefix("aten::") not in MASKS

    def _read_later(self, index: int, tensor: torch.Tensor) -> None:
        values = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        pair = torch.stack(torch.aminmax(values))
        self._pending.setdefault((pair.device, pair.dtype), []).append((index, pair))
        self._num_pending += 1
        if self._num_pending >= READ_AT_ONCE:
            self.read()

    def origin(self, index: int) -> tuple[Made, Made | None]:
        """From an entry that is not finite: where it arose; and for a NaN, where the infinity came from that made it."""
        kind = self.made[index].state
        found = self._first(index, least=NAN if kind == NAN else NEGATIVE)
        if kind != NAN:
            return self.made[found], None
        infinite = [parent for parent in self.made[found].parents if FINE < self.made[parent].state < NAN]
        return self.made[found], self.made[self._first(infinite[0], least=NEGATIVE)] if infinite else None

    def _first(self, index: int, least: int) -> int:
        """Go back over parents that are at least that bad, until there are none."""
        met = {index}
        while True:
            worse = [
                parent
                for parent in self.made[index].parents
                if self.made[parent].state >= least and parent not in met
            ]
            if not worse:
                return index
            index = worse[0]
            met.add(index)

    def told(self, index: int, *, step: int, seen_in: str | None, in_result: bool) -> NonFinite:
        """The record of an entry that is not finite."""
        origin, overflow = self.origin(index)
        return NonFinite(
            step=step,
            kind="nan" if self.made[index].state == NAN else "inf",
            seen_in=seen_in,
            in_result=in_result,
            source=origin.source,
            source_name=origin.name,
            origin=origin.place,
            overflow=None if overflow is None else overflow.place,
        )


def _state(low: float, high: float) -> int:
    if math.isnan(low) or math.isnan(high):
        return NAN
    if high == math.inf:
        return POSITIVE
    return NEGATIVE if low == -math.inf else FINE
