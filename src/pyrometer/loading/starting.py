"""What it takes to have workers at all: one is started with the user's loader, gives a few batches, and is ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from pyrometer.errors import InputError, UserProgramError
from pyrometer.loading.loader import epoch_batches, with_settings
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.stages import WorkerStart
from pyrometer.loading.watched import Pull, WatchedBatches
from pyrometer.quantity import Seconds

ONE = LoaderSettings(num_workers=1, prefetch_factor=2)
HURRIED = 5
"""Batches that are taken as fast as they come, the first of them included; fewer of a short epoch."""

ENOUGH_S: Seconds = 0.5
"""No further batch is asked for after so long."""

SETTLING_S: Seconds = 0.01
"""What a worker is given to hand over its last batch, after it is made."""

PATIENCE_S = 60
"""A worker that gives nothing for so long hangs: it was forked while another thread held a lock, for example."""


def try_worker(loader: DataLoader[Any]) -> WorkerStart:
    """Start one worker of a loader that has none, and see what that takes; a reason where it does not work.

    >>> try_worker(DataLoader([1, 2, 3])).refused is None
    True
    """
    own = with_settings(loader, ONE)
    own.timeout = PATIENCE_S
    with contextlib.closing(WatchedBatches(own)) as watched:
        try:
            return _tried(watched, _hurried(loader))
        except (InputError, UserProgramError) as error:
            return WorkerStart(refused=str(error))


def _hurried(loader: DataLoader[Any]) -> int:
    """How many batches are taken in a hurry, so that the queue can fill once more before the epoch ends."""
    batches = epoch_batches(loader)
    return HURRIED if batches is None else max(2, min(HURRIED, batches - ONE.capacity))


def _tried(watched: WatchedBatches, hurried: int) -> WorkerStart:
    began_s = time.perf_counter()
    batches = iter(watched)
    launched_s = time.perf_counter()
    received = _take(watched, batches, hurried, launched_s + ENOUGH_S)
    ending_s = time.perf_counter()
    watched.close()
    end_s = time.perf_counter() - ending_s
    making = [cost.total_s for cost in watched.costs()]
    batch_s = float(np.median(making)) if making else 0.0
    first = watched.pulls[:1]
    waits = [pull.wait_s for pull in watched.pulls[1:] if pull is not received]
    pace_s = float(np.median(waits)) if waits else batch_s
    own_s = float(np.mean([pull.cpu_s for pull in watched.pulls[1:]] or [0.0]))
    return WorkerStart(
        # It may have been amid a batch when it was ended.
        each_s=launched_s - began_s + max(0.0, end_s - batch_s),
        once_s=max(0.0, sum(pull.wait_s for pull in first) - (launched_s - began_s) - batch_s),
        overhead_s=max(0.0, pace_s - batch_s),
        receive_s=own_s if received is None else received.wait_s,
    )


def _take(watched: WatchedBatches, batches: Iterator[Any], hurried: int, end_s: Seconds) -> Pull | None:
    """Take some batches as fast as they come, and one more from a worker at rest, which is returned.

    A worker that makes its next batch in Python holds the interpreter's lock, so that the one that it hands over meanwhile is late.
    That is no cost of the handover: it is hidden where the worker sets the pace, and where the step does, the worker rests.
    """
    while len(watched.pulls) < hurried and time.perf_counter() < end_s:
        if next(batches, None) is None:
            return None
    while (watched.ready or 0) < ONE.capacity:
        if time.perf_counter() > end_s:
            return None
        time.sleep(SETTLING_S / 10)
    time.sleep(SETTLING_S)
    return watched.pulls[-1] if next(batches, None) is not None else None
