"""Fetching samples and batches with a stopwatch, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrometer.errors import InputError
from pyrometer.loading.profiling.keeping import seed_all
from pyrometer.loading.profiling.lines import LineSampler
from pyrometer.loading.profiling.source import Source
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import user_code

_ENDED = object()


@dataclass(frozen=True)
class Clocks:
    """Wall time, and CPU time of the calling thread, in seconds."""

    wall: Callable[[], Seconds] = time.perf_counter
    cpu: Callable[[], Seconds] = time.thread_time


@dataclass
class Budget:
    """Time that may be spent from now on."""

    clocks: Clocks
    seconds: Seconds
    _start: Seconds = field(init=False)

    def __post_init__(self) -> None:
        self._start = self.clocks.wall()

    @property
    def used_s(self) -> Seconds:
        """Time since the start."""
        return self.clocks.wall() - self._start

    @property
    def left_s(self) -> Seconds:
        """What is left; negative when it is overdrawn."""
        return self.seconds - self.used_s

    def allows(self, next_s: Seconds) -> bool:
        """Whether something that takes so long fits; it may overdraw by half of itself."""
        return self.left_s >= next_s / 2

    def part(self, share: float) -> Budget:
        """A share of the whole, or what is left where that is less."""
        return Budget(self.clocks, max(0.0, min(share * self.seconds, self.left_s)))


@dataclass(frozen=True)
class Fetched:
    """A sample and what it took."""

    index: int
    sample: Any
    wall_s: Seconds
    cpu_s: Seconds


def fetch_one(source: Source, key: Any, place: int, clocks: Clocks) -> Fetched:
    """Ask the dataset for one sample, the `place`-th that is asked for.

    Raises:
        UserProgramError: the dataset raised; names the index.
    """
    index = int(key) if isinstance(key, (int, np.integer)) else place
    with user_code(f"dataset[{key!r}]"):
        cpu, wall = clocks.cpu(), clocks.wall()
        sample = source.dataset[key]
        return Fetched(index, sample, clocks.wall() - wall, clocks.cpu() - cpu)


def fetch_next(iterator: Iterator[Any], place: int, clocks: Clocks) -> Fetched | None:
    """Take the next sample of an iterable dataset; `None` at its end.

    Raises:
        UserProgramError: the dataset raised; names the place in the stream.
    """
    with user_code(f"sample {place} of the iterable dataset"):
        cpu, wall = clocks.cpu(), clocks.wall()
        sample = next(iterator, _ENDED)
        fetched = Fetched(place, sample, clocks.wall() - wall, clocks.cpu() - cpu)
    return None if sample is _ENDED else fetched


def fetch_samples(
    source: Source, keys: Sequence[Any], budget: Budget, clocks: Clocks, *, seed: int = 0
) -> Iterator[Fetched]:
    """The samples asked for, or as many first ones of an iterable dataset; at least one, then as many as the budget allows.

    The global random state is seeded for each, so that a later fetch can tell what depends on it; the caller restores it.

    Raises:
        InputError: an iterable dataset gave nothing.
        UserProgramError: the dataset raised.
    """
    iterator = source.fresh_iterator() if source.kind == "iterable" else None
    slowest = 0.0
    for number, key in enumerate(keys):
        if number and not budget.allows(slowest):
            return
        seed_all(seed * 1_000_003 + number)
        fetch = (
            fetch_one(source, key, number, clocks)
            if iterator is None
            else fetch_next(iterator, number, clocks)
        )
        if fetch is None:
            if number == 0:
                raise InputError("dataset: its iterator gave no sample; there must be at least one")
            return
        slowest = max(slowest, fetch.wall_s)
        yield fetch


@dataclass(frozen=True)
class MadeBatch:
    """A batch, the samples that it was made of, and what both took."""

    samples: list[Any]
    batch: Any
    fetch_s: Seconds
    collate_s: Seconds


def make_batches(  # noqa: PLR0917
    source: Source, count: int, budget: Budget, clocks: Clocks, sample_s: Seconds, lines: LineSampler
) -> Iterator[MadeBatch]:
    """Batches as the loader makes them, in this process, as many as the budget allows; smaller ones where it is tight.

    Raises:
        UserProgramError: the dataset or the collate function raised.
    """
    iterator = source.fresh_iterator() if source.kind == "iterable" else None
    size = (source.batch_size or 1) if source.batching else 1
    drawn = source.index_batches(count) if iterator is None else [list(range(size))] * count
    for number, indices in enumerate(drawn):
        affordable = int(max(budget.left_s, 0.0) / sample_s) if sample_s else len(indices)
        if number and affordable < len(indices):
            return
        samples, fetch_s = _fetch_batch(source, indices[: max(affordable, 0)], iterator, clocks, lines)
        if not samples:
            return
        sample_s = fetch_s / len(samples)
        yield collated(source, samples, fetch_s, clocks, lines)


def collated(
    source: Source, samples: list[Any], fetch_s: Seconds, clocks: Clocks, lines: LineSampler
) -> MadeBatch:
    """Put samples together by the loader's function.

    Raises:
        UserProgramError: it raised.
    """
    lines.stage = "collate"
    try:
        with user_code("collate_fn"):
            start = clocks.wall()
            batch = source.collate(samples if source.batching else samples[0])
            return MadeBatch(samples, batch, fetch_s, clocks.wall() - start)
    finally:
        lines.stage = ""


def _fetch_batch(
    source: Source, indices: list[Any], iterator: Iterator[Any] | None, clocks: Clocks, lines: LineSampler
) -> tuple[list[Any], Seconds]:
    lines.stage = "dataset"
    start = clocks.wall()
    try:
        if iterator is not None:
            taken = [fetch_next(iterator, place, clocks) for place in indices]
            samples = [fetch.sample for fetch in taken if fetch is not None]
        elif source.batching and callable(getattr(source.dataset, "__getitems__", None)) and indices:
            with user_code(f"dataset.__getitems__ of {indices[0]} and {len(indices) - 1} more"):
                samples = list(source.dataset.__getitems__(indices))
        else:
            samples = [fetch_one(source, key, place, clocks).sample for place, key in enumerate(indices)]
    finally:
        lines.stage = ""
    return samples, clocks.wall() - start
