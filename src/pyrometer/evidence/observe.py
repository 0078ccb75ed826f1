"""All observers on one workload, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers import (
    ceilings,
    compilation,
    dataflow,
    host,
    loading,
    measurement,
    memory,
    numerics,
    program,
    trace,
)
from pyrometer.evidence.options import ObserveOptions
from pyrometer.hardware.environment import read_environment
from pyrometer.workload.workload import Workload

Observer = Callable[[Workload, Observed, ObserveOptions], Observed]
"""Adds its part to what was observed so far; what it cannot observe it tells in a note."""

OBSERVERS: tuple[Observer, ...] = (
    measurement.observe,
    trace.observe,
    host.observe,
    compilation.observe,
    memory.observe,
    loading.observe,
    program.observe,
    numerics.observe,
    dataflow.observe,
    ceilings.observe,
)
"""In order: what disturbs a program comes after what times it, and last what runs other steps than its own. A new observer is a module here and a part of `Evidence`."""


INTERRUPTED = "Ctrl-C ended it after the measurement: what had not been looked at by then is missing"


def observe(work: Workload, target: str, options: ObserveOptions | None = None) -> Observed:
    """Measure a workload with its phases and memory, then observe it in every other way.

    Args:
        work: what to observe.
        target: as it was typed.
        options: how much time to take.

    Returns:
        What was observed; after Ctrl-C, what had been observed by then.

    Raises:
        KeyboardInterrupt: Ctrl-C before there was a measurement.
        UserProgramError: the very first step raised.
    """
    chosen = options or ObserveOptions()
    seen = Observed(evidence=Evidence(target=target, environment=read_environment()))
    for look in OBSERVERS:
        try:
            seen = look(work, seen, chosen)
        except KeyboardInterrupt:
            if seen.evidence.measurement is None:
                raise
            return replace(seen.having(INTERRUPTED), interrupted=True)
        measured = seen.evidence.measurement
        if measured is not None and not measured.complete:
            break  # it failed or was interrupted, and would be again
    return seen
