"""What the rules look at, and how a change is tried out: on tensors without data, or on the recorded lives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pyrometer.advice import Gain
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.lives import Life, Lives
from pyrometer.memory.advice.observing import Observed, observe
from pyrometer.memory.category import CATEGORIES, Category
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.profile import MemoryProfile, PredictedMemory
from pyrometer.memory.recording.allocation import Allocation
from pyrometer.place import Place
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_percent
from pyrometer.workload.training import Training
from pyrometer.workload.whereabouts.lines import Site, site_of
from pyrometer.workload.workload import Workload

WORTH = 0.02
"""A saving below this share of the peak is not worth a word."""

NOTABLE = 0.1
"""Where nothing can be predicted, what a change lowers must hold this share of the peak."""

TRUSTED_ERROR = 0.1
"""Where the prediction misses the measured peak by more, it says nothing of changes."""


class Saving(NamedTuple):
    """What a change brings."""

    nbytes: Bytes | None
    """`None` where it cannot be predicted."""
    peak_bytes: Bytes | None
    phase: str | None = None
    """In which the peak falls then."""

    @property
    def gain(self) -> Gain | None:
        """As an advice says it; `None` where it cannot be predicted."""
        return None if self.nbytes is None else predicted(self.nbytes)


def predicted(saves_bytes: Bytes) -> Gain:
    """The gain of a change that was not made."""
    return Gain(
        saves_bytes=saves_bytes, method="predicted: the step was replayed, or ran on tensors without data"
    )


def measured(saves_bytes: Bytes) -> Gain:
    """The gain of a change that was made."""
    return Gain(saves_bytes=saves_bytes, measured=True, method="measured: the step ran changed")


@dataclass
class Case:
    """One program with what is known of its memory.

    Attributes:
        profile: of the program as written.
        work: the program.
        time_limit_s: changes that would be tried later are left out.
        clock: tells the time.
        predicted_s: how long it took to predict the program as written, where the profile holds that.
        notes: what was considered and does not help, and why.
    """

    profile: MemoryProfile
    work: Workload
    time_limit_s: Seconds
    clock: Callable[[], float] = time.monotonic
    predicted_s: Seconds = 0.0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._longest_s = self.predicted_s

    @cached_property
    def base(self) -> PredictedMemory | None:
        """The program as written, predicted; `None` where that cannot be, or is not what was measured."""
        if self.profile.predicted is None and self.predicted_s:
            return None  # it was tried, and the profile says why it failed
        try:
            memory = self.profile.predicted or self._timed(lambda: predict_memory(self.work))
        except PyrometerError as error:
            self.notes.append(f"changes could not be predicted, so they have no figures: {error}")
            return None
        if abs(memory.peak_bytes / max(self.peak_bytes, 1) - 1) > TRUSTED_ERROR:
            self.notes.append(
                f"changes have no figures, because the prediction of {format_bytes(memory.peak_bytes)} is not what was "
                f"measured, {format_bytes(self.peak_bytes)}"
            )
            return None
        return memory

    @cached_property
    def observed(self) -> Observed | None:
        """The program's steps with every use of every allocation; `None` where they cannot be watched.

        What is compiled is not looked at: its operators are others than those that would be seen.
        """
        if self.profile.source.startswith("the allocator"):
            return None
        if self.late:
            self.notes.append("which line uses what for how long was not looked at: time was up")
            return None
        try:
            return observe(self.work)
        except PyrometerError as error:
            self.notes.append(f"lines could not be looked at: {error}")
            return None

    @cached_property
    def lives(self) -> Lives | None:
        """When everything lived."""
        return None if self.observed is None else Lives(self.observed.log)

    @property
    def training(self) -> Training | None:
        """The work, where it is a training."""
        return self.work if isinstance(self.work, Training) else None

    @property
    def peak_bytes(self) -> Bytes:
        """The measured peak, without the allocator's cache."""
        return self.profile.peak_bytes - self.profile.ledger_bytes.get("cache", 0)

    @property
    def phase(self) -> str:
        """Where the peak falls, in words."""
        return self.profile.peak_phase or "an unknown phase"

    @property
    def where(self) -> str:
        """The peak and its phase, in words."""
        return f"the peak of {format_bytes(self.peak_bytes)} falls in {self.phase}"

    @property
    def late(self) -> bool:
        """Whether one more trial, as long as the longest before, would end after the time is up."""
        return self.clock() - self._began + self._longest_s > self.time_limit_s

    def held(self, *categories: Category) -> Bytes:
        """What categories hold at the peak."""
        return sum(self.profile.ledger_bytes.get(name, 0) for name in categories)

    def holds(self, *categories: Category) -> str:
        """What categories hold at the peak, in words."""
        present = [name for name in CATEGORIES if name in categories and self.held(name)]
        if not present:
            return f"{' and '.join(categories)} hold nothing"
        holding = [name for name in present if self.held(name) >= 0.01 * self.peak_bytes] or present
        return ", ".join(
            f"{name} {_verb(name)} {format_bytes(self.held(name))} ({format_percent(self.held(name) / max(self.peak_bytes, 1), 2)})"
            for name in holding
        )

    def tried(
        self,
        what: str,
        lowers: Sequence[Category],
        changed: Callable[[], PredictedMemory],
        *,
        silent: bool = False,
    ) -> Saving | None:
        """Predict a changed program; `None`, with a note, where it would not lower the peak.

        Args:
            what: the change, as the subject of a sentence.
            lowers: categories that it can lower; where they hold nothing at the peak it is not even tried.
            changed: predicts the changed program.
            silent: leave no note that it does not help.
        """
        held = self.held(*lowers)
        if held < WORTH * self.peak_bytes:
            self._no_help(what, f"{self.where}, where {self.holds(*lowers)}", silent=silent)
            return None
        if self.base is None:
            return Saving(None, None) if held >= NOTABLE * self.peak_bytes else None
        if self.late:
            self.notes.append(f"{what} was not tried: time was up")
            return None
        try:
            memory = self._timed(changed)
        except PyrometerError as error:
            if not silent:
                self.notes.append(f"{what} could not be tried: {error}")
            return None
        saves = self.base.peak_bytes - memory.peak_bytes
        if saves < WORTH * self.base.peak_bytes:
            self._no_help(
                what, f"{self.where}, and would be {format_bytes(memory.peak_bytes)}", silent=silent
            )
            return None
        return Saving(saves, memory.peak_bytes, memory.peak_phase)

    def _timed(self, predict: Callable[[], PredictedMemory]) -> PredictedMemory:
        begin = self.clock()
        try:
            return predict()
        finally:
            self._longest_s = max(self._longest_s, self.clock() - begin)

    def relived(self, changed: dict[int, list[Life]]) -> Saving | None:
        """What the recorded steps would have held with other lives; `None` where that is not worth a word."""
        if self.lives is None or not changed:
            return None
        before, after = self.lives.peak(), self.lives.peak(changed)
        return Saving(before - after, after) if before - after >= WORTH * before else None

    def allocation(self, index: int) -> Allocation:
        """One of the observed allocations."""
        assert self.observed is not None
        return self.observed.log.allocations[index]

    def site(self, index: int) -> Site | None:
        """The user's line that made an allocation."""
        point = self.allocation(index).origin.point
        return None if point is None else site_of(point)

    def main_line(self, indices: Iterable[int]) -> Place | None:
        """The line whose allocations hold the most, as an advice names it."""
        sums: dict[Site, Bytes] = {}
        for index in indices:
            site = self.site(index)
            if site is not None:
                sums[site] = sums.get(site, 0) + self.allocation(index).nbytes
        most = max(sums, key=lambda site: sums[site], default=None)
        return None if most is None else Place(file=most.file, line=most.line)

    def lines(self, indices: Iterable[int], most: int = 3) -> str:
        """The lines that made allocations, the largest first, with their bytes, text and modules."""
        sums: dict[str, Bytes] = {}
        for index in indices:
            text = self._line(index)
            sums[text] = sums.get(text, 0) + self.allocation(index).nbytes
        ordered = sorted(sums.items(), key=lambda item: -item[1])
        shown = [f"{text}: {format_bytes(nbytes)}" for text, nbytes in ordered[:most]]
        return "; ".join(shown + [f"and {len(ordered) - most} more"] * (len(ordered) > most))

    def _line(self, index: int) -> str:
        site, module = self.site(index), self.allocation(index).origin.module
        place = self.allocation(index).origin.operator
        if site is not None:
            place = f"{site.place} `{site.source}`" if site.source else site.place
        return f"{place} in {module}" if module else place

    def _no_help(self, what: str, why: str, *, silent: bool) -> None:
        if not silent:
            self.notes.append(f"{what} would not lower the peak: {why}")


def _verb(category: Category) -> str:
    return "hold" if category.endswith("s") else "holds"
