"""How every allocation of a step grows with the batch and the sequence, from a few rehearsals of other sizes.

A program that does the same in the same order, whatever the sizes, allocates the same things; each is a sum of the
terms 1, B, T, B·T, T² and B·T² with coefficients of its own. Once these are known, the live bytes after every event,
and so the peak, where it falls, and the ledger there, follow for any size without running anything: also where the
peak moves from one phase to another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pyrometer.errors import InputError, PyrometerError
from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.prediction.lifetimes import Floats, Integers, Lifetimes, Peak, sizes_of
from pyrometer.memory.prediction.rehearsal import Rehearsal, rehearse
from pyrometer.memory.prediction.settings import Settings
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.workload import Workload

POWERS: dict[str, tuple[int, int]] = {
    "1": (0, 0),
    "B": (1, 0),
    "T": (0, 1),
    "B·T": (1, 1),
    "T²": (0, 2),
    "B·T²": (1, 2),
}
"""Term → exponents of batch and sequence."""

TIME_LIMIT_S = 20.0


@dataclass(frozen=True)
class Point:
    """One size, rehearsed."""

    batch: int
    sequence: int
    sizes: Integers

    def terms(self, names: tuple[str, ...]) -> Floats:
        """The value of each term here."""
        return terms_at(self.batch, self.sequence, names)


PEAK = "peak"


@dataclass(frozen=True)
class Totals:
    """The most that each category held at one size, and the peak of all."""

    batch: int
    sequence: int
    nbytes: dict[str, Bytes]

    @classmethod
    def of(cls, rehearsal: Rehearsal, lives: Lifetimes) -> Totals:
        """The totals of a rehearsal."""
        sizes = sizes_of(rehearsal.log)
        found = {name: int(lives.levels(sizes, name).max(initial=0)) for name in CATEGORIES}
        return cls(rehearsal.batch or 1, rehearsal.sequence or 1, found | {PEAK: lives.peak(sizes).nbytes})


@dataclass
class Growth:
    """Sizes of all allocations as functions of batch and sequence.

    Where the same things are not allocated at all sizes (a Python loop over the sequence), `even` tells; then only the
    totals of the sizes that were rehearsed are known.

    Attributes:
        work: what was rehearsed.
        settings: everything but the sizes.
        batch: present size.
        sequence: present size; `None` where there is no sequence, or nothing is known of it.
        lives: when allocations live.
        points: the sizes that were rehearsed, the present one first, and did the same things.
        totals: of all sizes that were rehearsed.
        even: whether all batches did the same things.
        notes: what could not be told.
    """

    work: Workload
    settings: Settings
    batch: int
    sequence: int | None
    lives: Lifetimes
    points: list[Point]
    totals: list[Totals]
    even: bool = True
    notes: list[str] = field(default_factory=list)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The terms that the points can tell apart."""
        known = [name for name, (_, t) in POWERS.items() if t == 0 or self.sequence is not None]
        return tuple(known)

    @cached_property
    def coefficients(self) -> Floats:
        """Bytes per term of each allocation, `[a, terms]`."""
        scale = terms_at(self.batch, self.sequence or 1, self.names)
        matrix = np.stack([point.terms(self.names) / scale for point in self.points])
        sizes = np.stack([point.sizes for point in self.points]).astype(np.float64)
        solved, *_ = np.linalg.lstsq(matrix, sizes, rcond=None)
        coefficients: Floats = solved.T / scale
        coefficients[np.abs(coefficients * scale) < 1e-6 * (1 + sizes[0][:, None])] = 0.0
        return coefficients

    def sizes(self, batch: int, sequence: int | None = None) -> Integers:
        """Bytes of each allocation, `[a]`."""
        terms = terms_at(batch, sequence or self.sequence or 1, self.names)
        return np.rint(np.maximum(self.coefficients @ terms, 0)).astype(np.int64)

    def peak(self, batch: int, sequence: int | None = None) -> Peak:
        """The peak at any size."""
        return self.lives.peak(self.sizes(batch, sequence))

    def needs(self, batch: int, sequence: int | None = None) -> tuple[Bytes, Bytes | None]:
        """Peak, and what CUDA's allocator would reserve."""
        sizes = self.sizes(batch, sequence)
        return self.lives.peak(sizes).nbytes, self.lives.reserved(sizes)


def terms_at(batch: int, sequence: int, names: tuple[str, ...]) -> Floats:
    """The values of terms.

    >>> terms_at(2, 3, ("1", "B", "B·T²")).tolist()
    [1.0, 2.0, 18.0]
    """
    return np.array([float(batch) ** POWERS[name][0] * float(sequence) ** POWERS[name][1] for name in names])


def grow(
    work: Workload,
    settings: Settings,
    *,
    sequence: bool = True,
    time_limit_s: Seconds = TIME_LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> Growth:
    """Rehearse a workload at a few sizes.

    Args:
        work: a training or an inference.
        settings: everything but the sizes that are varied.
        sequence: vary the sequence too, where there is one.
        time_limit_s: sizes that would begin later are left out; three batches are always tried.
        clock: tells the time.

    Raises:
        InputError: the batch's dimension cannot be told.
        NotPredictableError: the program needs the values of tensors.
        UserProgramError: a step raised.
    """
    begin = clock()
    base = rehearse(work, settings)
    if base.batch is None:
        raise InputError(
            "batch: its dimension cannot be told from the inputs; say which it is: dims={'x': {0: 'B'}}"
        )
    growth = _started(work, settings, base)
    for factor in (2, 4):
        growth.even &= _add(growth, growth.batch * factor, base.sequence)
    if not growth.even:
        growth.notes.append("the program allocates other things at other batches")
    if sequence and base.sequence is not None:
        each_s = (clock() - begin) / len(growth.totals)  # what one rehearsal takes
        _add_sequences(growth, base.sequence, lambda: clock() - begin + each_s > time_limit_s)
    return growth


def _started(work: Workload, settings: Settings, base: Rehearsal) -> Growth:
    assert base.batch is not None
    lives = Lifetimes.of(base.log, cuda=base.emulates_cuda)
    return Growth(
        work=work,
        settings=settings,
        batch=base.batch,
        sequence=None,
        lives=lives,
        points=[Point(base.batch, base.sequence or 1, sizes_of(base.log))],
        totals=[Totals.of(base, lives)],
        notes=[*base.notes, *base.log.notes],
    )


def _add_sequences(growth: Growth, present: int, late: Callable[[], bool]) -> None:
    """Add sizes of other sequences: shorter ones first, since models bound the length."""
    points = list(growth.points)
    for lengths in ((present // 2, present // 4), (present * 2, present * 3)):
        if min(lengths) < 1 or len({*lengths, present}) < 3:
            continue
        sizes = [(growth.batch * factor, length) for length in lengths for factor in (1, 2)]
        done = _added(growth, sizes, late)
        if done == "even":
            growth.sequence = present
            return
        growth.points = list(points)
        if done == "late":
            growth.notes.append("sequence: left out, because time was up")
        if done != "refused":
            return
    growth.notes.append(
        f"sequence: how memory grows with it could not be told; the model may take only {present}"
    )


def _added(growth: Growth, sizes: list[tuple[int, int]], late: Callable[[], bool]) -> str:
    """Rehearse sizes: `even` or `uneven`, as they did the same or not; `late` or `refused` where they ended early."""
    even = True
    for batch, length in sizes:
        if late():
            return "late"
        try:
            even &= _add(growth, batch, length)
        except PyrometerError:
            return "refused"  # a model that takes one length only
    return "even" if even else "uneven"


def _add(growth: Growth, batch: int, sequence: int | None) -> bool:
    """Rehearse one more size; whether the same things were allocated in the same order."""
    varied = sequence is not None and sequence != growth.points[0].sequence
    settings = replace(
        growth.settings, batch=batch, sequence=sequence if varied else growth.settings.sequence
    )
    rehearsal = rehearse(growth.work, settings)
    lives = Lifetimes.of(rehearsal.log, cuda=rehearsal.emulates_cuda)
    growth.totals.append(Totals.of(rehearsal, lives))
    if not lives.matches(growth.lives):
        return False
    growth.points.append(Point(batch, sequence or 1, sizes_of(rehearsal.log)))
    return True
