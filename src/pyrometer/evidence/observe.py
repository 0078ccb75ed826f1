"""All observers on one workload, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from pyrometer.bench.stage import Progress, part_of
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
from pyrometer.workload.training import Training
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


EXPECTED: Mapping[Observer, float] = MappingProxyType({
    measurement.observe: 1.1,
    trace.observe: 0.4,
    host.observe: 0.1,
    memory.observe: 0.3,
    loading.observe: 0.15,
    numerics.observe: 0.15,
    dataflow.observe: 0.25,
    ceilings.observe: 0.25,
})  # fmt: skip
"""About what each takes, as a share of the budget; what is not named takes next to nothing."""

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
    for look, progress in zip(OBSERVERS, _progress(work, chosen), strict=True):
        try:
            seen = look(work, seen, replace(chosen, progress=progress))
        except KeyboardInterrupt:
            if seen.evidence.measurement is None:
                raise
            return replace(seen.having(INTERRUPTED), interrupted=True)
        if seen.interrupted:
            return seen.having(INTERRUPTED)
        measured = seen.evidence.measurement
        if measured is not None and not measured.complete:
            break  # it failed or was interrupted, and would be again
    return seen


def _progress(work: Workload, options: ObserveOptions) -> Iterator[Progress]:
    """For each observer its part of the whole, as large as it usually lasts."""
    lasting = [EXPECTED.get(look, 0.0) * options.budget_s for look in OBSERVERS]
    if not isinstance(work, Training):
        lasting[OBSERVERS.index(loading.observe)] = 0.0
    whole_s = sum(lasting) or 1.0
    done_s = 0.0
    for lasts_s in lasting:
        yield part_of(options.progress, done_s / whole_s, (done_s + lasts_s) / whole_s, lasts_s)
        done_s += lasts_s
