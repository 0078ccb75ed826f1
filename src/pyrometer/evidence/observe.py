"""All observers on one workload, one after the other."""

from __future__ import annotations

import time
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
from pyrometer.quantity import Seconds
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
    trace.observe: 0.35,
    host.observe: 0.1,
    memory.observe: 0.25,
    loading.observe: 0.1,
    numerics.observe: 0.1,
    dataflow.observe: 0.2,
    ceilings.observe: 0.2,
})  # fmt: skip
"""About what each takes, as a share of the budget; what is not named takes next to nothing."""

ALLOWANCE = 1.2
"""Times the budget that all observers after the measurement may take together: where one takes more than its part, the later ones
take less."""

LEAST = 0.5
"""Of the budget that each of them has in any case."""

INTERRUPTED = "Ctrl-C ended it after the measurement: what had not been looked at by then is missing"


def observe(
    work: Workload,
    target: str,
    options: ObserveOptions | None = None,
    *,
    clock: Callable[[], Seconds] = time.monotonic,
) -> Observed:
    """Measure a workload with its phases and memory, then observe it in every other way.

    Args:
        work: what to observe.
        target: as it was typed.
        options: how much time to take.
        clock: gives seconds.

    Returns:
        What was observed; after Ctrl-C, what had been observed by then.

    Raises:
        KeyboardInterrupt: Ctrl-C before there was a measurement.
        UserProgramError: the very first step raised.
    """
    chosen = options or ObserveOptions()
    seen = Observed(evidence=Evidence(target=target, environment=read_environment()))
    first_s = began_s = clock()
    for look, progress in zip(OBSERVERS, _progress(work, chosen), strict=True):
        if chosen.latest_s is not None and clock() - first_s > chosen.latest_s:
            break
        budget_s = chosen.budget_s
        if look is not OBSERVERS[0]:
            budget_s *= share_left(look, (clock() - began_s) / budget_s)
        try:
            seen = look(work, seen, replace(chosen, progress=progress, budget_s=budget_s))
        except KeyboardInterrupt:
            if seen.evidence.measurement is None:
                raise
            return replace(seen.having(INTERRUPTED), interrupted=True)
        if look is OBSERVERS[0]:
            began_s = clock()
        if seen.interrupted:
            return seen.having(INTERRUPTED)
        measured = seen.evidence.measurement
        if measured is not None and not measured.complete:
            break  # it failed or was interrupted, and would be again
    return seen


def share_left(look: Observer, spent: float) -> float:
    """The share of its budget that an observer still has.

    Args:
        look: which one.
        spent: by those between it and the measurement, in budgets.

    >>> share_left(dataflow.observe, 0.2), share_left(ceilings.observe, 9.0)
    (1.0, 0.5)
    """
    names = list(EXPECTED)
    if look not in names:
        return 1.0
    wanted = sum(EXPECTED[name] for name in names[names.index(look) :])
    return min(1.0, max(LEAST, (ALLOWANCE - spent) / wanted))


def _progress(work: Workload, options: ObserveOptions) -> Iterator[Progress]:
    """For each observer its part of the whole, as large as it usually lasts."""
    idle = set() if isinstance(work, Training) else {loading.observe}
    lasting = [0.0 if look in idle else EXPECTED.get(look, 0.0) * options.budget_s for look in OBSERVERS]
    whole_s = sum(lasting) or 1.0
    done_s = 0.0
    for lasts_s in lasting:
        yield part_of(options.progress, done_s / whole_s, (done_s + lasts_s) / whole_s, lasts_s)
        done_s += lasts_s
