"""What observing costs on this machine, measured apart from any script."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer

NUM_TRIALS = 60
CACHE_FLOATS = 1 << 22  # 32 MiB, more than most caches hold
TRIMMED_SHARE = 0.05


def event_cost_ns(path: Path) -> float:
    """Time that one event takes, memory samples included, in the state that a step's kernels leave the caches in.

    In a tight loop an event takes a tenth of that. Between two events 32 MiB are written; the slowest 5 % of the
    trials, in which something else ran, are left out of the mean.

    Args:
        path: where the log of the trial may be written.
    """
    torch = SimpleNamespace(
        compiler=SimpleNamespace(is_compiling=lambda: False),
        is_grad_enabled=lambda: True,
        version=SimpleNamespace(cuda=None, hip=None),
    )
    observer = Observer(EventLog(str(path)), torch)
    buffer = np.zeros(CACHE_FLOATS)
    costs = np.empty(NUM_TRIALS)
    for trial in range(NUM_TRIALS):
        buffer += 1.0
        start = time.perf_counter_ns()
        observer.begin(kinds.BACKWARD_BEGIN, None)
        observer.end(kinds.BACKWARD_END)
        costs[trial] = (time.perf_counter_ns() - start) / 2
    return float(np.sort(costs)[: round(NUM_TRIALS * (1 - TRIMMED_SHARE))].mean())
