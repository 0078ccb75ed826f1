"""Profiling a dataset and what puts its samples together."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from torch.utils.data import default_collate

from pyrometer.errors import UserProgramError
from pyrometer.loading.figures import require_count, require_positive
from pyrometer.loading.profiling.advise import advise_on_samples
from pyrometer.loading.profiling.contents import batch_contents
from pyrometer.loading.profiling.fetching import (
    Budget,
    Clocks,
    Fetched,
    MadeBatch,
    collated,
    fetch_samples,
    make_batches,
)
from pyrometer.loading.profiling.held import held_objects
from pyrometer.loading.profiling.keeping import preserved_objects
from pyrometer.loading.profiling.leaves import fingerprint, num_bytes_of
from pyrometer.loading.profiling.lines import LineSampler
from pyrometer.loading.profiling.padding import padding_of
from pyrometer.loading.profiling.pickling import pickled_dataset
from pyrometer.loading.profiling.record import BatchTimes, RepeatedWork, SampleProfile
from pyrometer.loading.profiling.repeats import NUM_REPEATED, repeated_work
from pyrometer.loading.profiling.source import Source, source_of
from pyrometer.loading.profiling.times import sample_times
from pyrometer.quantity import Bytes, Seconds

DEFAULT_SAMPLES = 128
DEFAULT_BATCHES = 8
DEFAULT_BUDGET_S = 2.0

_SAMPLES_SHARE = 0.35
_REPEATS_SHARE = 0.25
_BATCHES_SHARE = 0.3
_PICKLE_SHARE = 0.1
_KEPT_BYTES: Bytes = 64 * 2**20


def profile_samples(
    loader_or_dataset: Any,
    *,
    samples: int = DEFAULT_SAMPLES,
    batches: int = DEFAULT_BATCHES,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    clocks: Clocks | None = None,
) -> SampleProfile:
    """Find out what samples and batches cost, where the time goes, and what of it could be saved.

    Everything runs in this process, without workers, in four parts: single samples spread over the dataset; the same samples again
    with other random numbers; batches as the loader draws them; and what the dataset holds. At least one sample is fetched; beyond
    that nothing is begun that would overdraw the budget by more than half of itself.

    The dataset is left as it was found: random state (Python, NumPy, torch, and generators that dataset, transforms and
    samplers hold), attributes, and entries of containers among them are restored, and what had changed is noted. What
    `__getitem__` does elsewhere (files, other processes) cannot be taken back. `worker_init_fn` is not called.

    Args:
        loader_or_dataset: a `DataLoader`, or a dataset with `__getitem__` or `__iter__` (put together 32 at a time by
            `default_collate`).
        samples: at most so many samples are timed one by one.
        batches: at most so many batches are made.
        budget_s: time for all of it.
        clocks: wall time and CPU time of the calling thread.

    Raises:
        InputError: what was given is no dataset, is empty, or is an iterator; or a limit is not positive.
        UserProgramError: the dataset or the collate function raised; names the index.

    >>> import torch
    >>> profile_samples([(torch.zeros(3), 1)] * 8, budget_s=0.2).contents.num_tensors
    2
    """
    require_count("samples", samples)
    require_count("batches", batches)
    require_positive("budget_s", budget_s, f"{DEFAULT_BUDGET_S:g}")
    clocks = clocks or Clocks()
    run = _Run(source_of(loader_or_dataset), clocks, Budget(clocks, budget_s))
    with preserved_objects([run.source.dataset, run.source.collate, run.source.indices]) as changed:
        profile = run.go(samples, batches)
    notes = [*run.notes, *_restored(changed)]
    profile = msgspec.structs.replace(profile, notes=notes, elapsed_s=run.budget.used_s)
    return msgspec.structs.replace(profile, advice=advise_on_samples(profile))


@dataclass
class _Run:
    """One profiling under way."""

    source: Source
    clocks: Clocks
    budget: Budget
    notes: list[str] = field(default_factory=list)
    _kept: list[Any] = field(default_factory=list)

    def go(self, samples: int, batches: int) -> SampleProfile:
        """Run all parts."""
        source = self.source
        keys = source.keys(samples) if source.kind == "map" else range(samples)
        fetched, prints = self._samples(keys)
        times = sample_times(fetched, by_index=source.kind == "map")
        repeated = self._repeated(keys, prints)
        lines = LineSampler()
        with lines:
            made = self._batches(batches, times.median_s, lines)
        parts = (source.dataset, source.collate)
        return SampleProfile(
            dataset=type(source.dataset).__name__,
            kind=source.kind,
            num_samples=source.num_samples,
            batch_size=source.batch_size if source.batching else None,
            num_workers=source.num_workers,
            samples=times,
            batches=self._batch_times(made, lines),
            contents=batch_contents(made) if made else None,
            padding=padding_of(made),
            repeated=repeated,
            held=held_objects(source.dataset),
            pickled=pickled_dataset(parts, limit_s=self.budget.seconds * _PICKLE_SHARE),
            elapsed_s=0.0,
        )

    def _samples(self, keys: Sequence[Any]) -> tuple[list[Fetched], list[bytes | None]]:
        """Times of samples without the samples, and fingerprints of the first; a few are kept, to put together later."""
        fetched: list[Fetched] = []
        prints: list[bytes | None] = []
        kept_bytes = 0
        for sample in fetch_samples(self.source, keys, self.budget.part(_SAMPLES_SHARE), self.clocks):
            if len(prints) < NUM_REPEATED:
                prints.append(fingerprint(sample.sample))
            kept_bytes += num_bytes_of(sample.sample)
            if len(self._kept) < (self.source.batch_size or 1) and kept_bytes <= _KEPT_BYTES:
                self._kept.append(sample.sample)
            fetched.append(Fetched(sample.index, None, sample.wall_s, sample.cpu_s))
        return fetched, prints

    def _repeated(self, keys: Sequence[Any], prints: Sequence[bytes | None]) -> RepeatedWork | None:
        if self.budget.left_s <= 0:
            self.notes.append("no time was left to fetch samples twice: whether work repeats is not known")
            return None
        return repeated_work(self.source, keys, prints, self.budget.part(_REPEATS_SHARE), self.clocks)

    def _batches(self, count: int, sample_s: Seconds, lines: LineSampler) -> list[MadeBatch]:
        source = self.source
        try:
            batches = list(
                make_batches(source, count, self.budget.part(_BATCHES_SHARE), self.clocks, sample_s, lines)
            )
            if not batches and self._kept:
                self.notes.append("no time was left to fetch batches: one was made of samples fetched before")
                fetch_s = sample_s * len(self._kept)
                batches = [collated(source, self._kept, fetch_s, self.clocks, lines)]
        except UserProgramError as error:
            if source.is_loader or not str(error).startswith("collate_fn"):
                raise
            self.notes.append(f"default_collate cannot put samples of this dataset together ({error})")
            return []
        if batches and source.batching and len(batches[0].samples) < (source.batch_size or 1):
            self.notes.append(
                f"batches have {len(batches[0].samples)} samples instead of {source.batch_size}"
            )
        return batches

    def _batch_times(self, batches: Sequence[MadeBatch], lines: LineSampler) -> BatchTimes | None:
        if not batches:
            return None
        fetch_s = float(np.median([batch.fetch_s for batch in batches]))
        collate_s = float(np.median([batch.collate_s for batch in batches]))
        total_s = sum(batch.fetch_s + batch.collate_s for batch in batches)
        collate = self.source.collate
        return BatchTimes(
            num_batches=len(batches),
            batch_size=float(np.mean([len(batch.samples) for batch in batches])),
            fetch_s=fetch_s,
            collate_s=collate_s,
            collate_share=collate_s / (fetch_s + collate_s) if fetch_s + collate_s else 0.0,
            collate=getattr(collate, "__name__", type(collate).__name__),
            default_s=_default_time(self.source, batches[-1], self.clocks),
            copy_s=_copy_time(num_bytes_of(batches[-1].batch), self.clocks),
            lines=lines.shares(),
            line_sampling_share=lines.cost_s / total_s if total_s else 0.0,
        )


def _default_time(source: Source, made: MadeBatch, clocks: Clocks) -> Seconds | None:
    """What `default_collate` takes for the same batch; `None` where it is used anyway, or gives another batch."""
    if source.collate is default_collate or not source.batching:
        return None
    times = []
    for _ in range(3):
        with contextlib.suppress(TypeError, RuntimeError, ValueError, KeyError, AttributeError, IndexError):
            start = clocks.wall()
            batch = default_collate(made.samples)
            times.append(clocks.wall() - start)
            expected = fingerprint(made.batch)
            if expected is None or fingerprint(batch) != expected:
                return None
    return min(times) if times else None


def _copy_time(num_bytes: Bytes, clocks: Clocks) -> Seconds:
    block = np.zeros(max(1, num_bytes), dtype=np.uint8)  # not by torch: that may wait for its threads
    times = []
    for _ in range(3):
        start = clocks.wall()
        block.copy()
        times.append(clocks.wall() - start)
    return min(times)


def _restored(changed: Sequence[str]) -> list[str]:
    if not changed:
        return []
    return [f"fetching changed {', '.join(sorted(set(changed)))}; restored"]
