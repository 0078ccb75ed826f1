"""Where the host's time goes, to the line and to what it does there."""

from __future__ import annotations

from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.host.build import build_profile
from pyrometer.host.sampling import sample_host
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.15
"""Share of the check's budget that sampling may take on top."""

LONGEST_S = 2.0


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Sample some steps with nothing else beside."""
    options.progress(1.0, "looking where the host is")
    try:
        samples = sample_host(work, budget_s=min(LONGEST_S, BUDGET_SHARE * options.budget_s))
    except PyrometerError as error:
        return seen.having(f"where the host's time goes was not sampled: {error}")
    if not samples.stacks:
        return seen.having(*samples.notes)
    return seen.having(host=build_profile(samples))
