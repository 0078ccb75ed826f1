"""How long a step takes; and what torch.compile does by itself meanwhile."""

from __future__ import annotations

from pyrometer.bench.measure import measure
from pyrometer.bench.quality import Circumstances
from pyrometer.compiler.collecting.collector import collect
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers.compilation import compiled_by_itself
from pyrometer.evidence.options import ObserveOptions
from pyrometer.workload.workload import Workload


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Measure with phases and memory; the budget begins after the first call.

    Raises:
        UserProgramError: the very first step raised: then there is nothing to observe.
    """
    command = f"{options.command} {seen.evidence.target}" if options.command else ""
    asked = Circumstances(command=command, budget_s=options.budget_s)
    with collect() as collector:
        measurement = measure(
            work,
            budget_s=options.budget_s,
            confidence=options.confidence,
            beyond_first_call=True,
            circumstances=asked,
            progress=options.progress,
        )
    return seen.having(measurement=measurement, compiled=compiled_by_itself(collector.log(), measurement))
