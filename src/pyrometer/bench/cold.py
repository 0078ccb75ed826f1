"""Cold starts: what a user waits for before the first result, again and again in fresh processes.

The first process finds inductor's cache empty, because all of them share one of their own; the others find what the first
has left there. The files of Python and torch may be in the system's file cache from the beginning, which nobody can empty
without being root.

Nothing large is imported at the top of this module: it would count as the interpreter's own start.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from typing import Annotated

from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.record import STAGES, ColdStart, ColdStarts, StageTime
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.workload.target import Target, TargetSpec

NUM_STEADY = 40
STEADY_S = 2.0
CONFIDENCE = 0.95


class ColdRequest(Record, frozen=True, kw_only=True):
    """What a fresh process is asked to start."""

    spec: TargetSpec
    cache: Annotated[str, doc("folder of inductor's cache")]
    asked_ns: Annotated[
        int, doc("the monotonic clock, which all processes share, when the process was asked for")
    ]


def measure_cold(
    target: Target, times: int, progress: Callable[[float, str], None] | None = None
) -> ColdStarts:
    """Start a target in fresh processes, one after the other. Ctrl-C keeps the starts before.

    Args:
        target: what to start.
        times: how many processes.
        progress: told how far it is, between processes.

    Raises:
        InputError: not even one process, or a target that cannot be used.
        UserProgramError: the target failed, or its process was killed.
    """
    if times < 1:
        raise InputError(f"cold: got {times} processes; at least 1 is needed, and 7 for an interval")
    starts: list[ColdStart] = []
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="pyrometer-cold-", ignore_cleanup_errors=True) as cache:
        try:
            for number in range(times):
                if progress is not None:
                    progress(number / times, f"cold start {number + 1} of {times}")
                request = ColdRequest(spec=target.spec, cache=cache, asked_ns=time.monotonic_ns())
                starts.append(run_fresh(start_cold, request))
        except KeyboardInterrupt:
            if not starts:
                raise
            interrupted = True
    later = starts[1:]
    stages = [summarise_stage(name, [getattr(start, name) for start in later]) for name in STAGES if later]
    return ColdStarts(
        first=starts[0], later=later, stages=stages, confidence=CONFIDENCE, interrupted=interrupted
    )


def start_cold(request: ColdRequest) -> ColdStart:
    """Import torch, load the target, run it; what every fresh process does. Our own imports do not count."""
    began_ns = time.monotonic_ns()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request.cache
    import torch  # noqa: F401 - to see how long it takes

    imported_ns = time.monotonic_ns()
    from pyrometer.bench.clock import clock_for
    from pyrometer.bench.sampling import StepTimer
    from pyrometer.workload.loading import load_workload

    loading_ns = time.monotonic_ns()
    with load_workload(request.spec.target()).open() as session:
        loaded_ns = time.monotonic_ns()
        timer = StepTimer(session, clock_for(session.device), overhead_s=0.0)
        timer.first_call()
        limit_ns = time.monotonic_ns() + int(STEADY_S * 1e9)
        while len(timer.samples.times) < NUM_STEADY and time.monotonic_ns() < limit_ns:
            timer.run(1)
    stages_s = {
        "python_s": (began_ns - request.asked_ns) * 1e-9,
        "import_s": (imported_ns - began_ns) * 1e-9,
        "load_s": (loaded_ns - loading_ns) * 1e-9,
        "first_call_s": timer.samples.first_call_s,
    }
    later = timer.samples.times[len(timer.samples.times) // 2 :]
    return ColdStart(**stages_s, total_s=sum(stages_s.values()), steady_s=statistics.median(later))


def summarise_stage(name: str, times_s: list[Seconds]) -> StageTime:
    """Median, extremes and, from six starts on, the interval of the median between two order statistics.

    >>> stage = summarise_stage("load_s", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> stage.median_s, stage.ci_low_s, stage.ci_high_s
    (3.5, 1.0, 6.0)
    """
    ordered = sorted(times_s)
    rank = _outer_rank(len(ordered))
    return StageTime(
        name=name,
        median_s=statistics.median(ordered),
        min_s=ordered[0],
        max_s=ordered[-1],
        ci_low_s=ordered[rank - 1] if rank else None,
        ci_high_s=ordered[-rank] if rank else None,
    )


def _outer_rank(n: int) -> int:
    """The largest rank below which the true median lies with at most half the error probability; 0 for fewer than six.

    How many of `n` values are below their median is a fair coin thrown `n` times.
    """
    below = accumulate(math.comb(n, k) / 2**n for k in range(n + 1))
    return sum(probability <= (1 - CONFIDENCE) / 2 for probability in below)
