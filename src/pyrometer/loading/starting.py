"""What it takes to have workers at all: one is started with the user's loader, gives a few batches, and is ended."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from pyrometer.errors import InputError, UserProgramError
from pyrometer.loading.loader import with_settings
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.stages import WorkerStart, handover_s
from pyrometer.loading.watched import WatchedBatches
from pyrometer.quantity import Seconds

ONE = LoaderSettings(num_workers=1, prefetch_factor=2)
NUM_BATCHES = 6
ENOUGH_S: Seconds = 0.5
"""No further batch is asked for after so long."""

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
            return _tried(watched)
        except (InputError, UserProgramError) as error:
            return WorkerStart(refused=str(error))


def _tried(watched: WatchedBatches) -> WorkerStart:
    began_s = time.perf_counter()
    batches = iter(watched)
    launched_s = time.perf_counter()
    while len(watched.pulls) < NUM_BATCHES and next(batches, None) is not None:
        if time.perf_counter() - launched_s > ENOUGH_S:
            break
    ending_s = time.perf_counter()
    watched.close()
    end_s = time.perf_counter() - ending_s
    making = [cost.total_s for cost in watched.costs()]
    batch_s = float(np.median(making)) if making else 0.0
    first, later = watched.pulls[:1], watched.pulls[1:]
    pace_s = float(np.median([pull.wait_s for pull in later])) if later else batch_s
    return WorkerStart(
        # It may have been amid a batch when it was ended.
        each_s=launched_s - began_s + max(0.0, end_s - batch_s),
        once_s=max(0.0, sum(pull.wait_s for pull in first) - (launched_s - began_s) - batch_s),
        overhead_s=max(0.0, pace_s - batch_s),
        receive_s=handover_s(later, ONE),
    )
