"""Checking a workload: observed in every way, and explained."""

from __future__ import annotations

from pyrometer.bench.measure import Progress
from pyrometer.checkup.checkup import Checkup
from pyrometer.checkup.explaining import explained
from pyrometer.checkup.observe import observe
from pyrometer.checkup.options import CheckOptions
from pyrometer.workload.workload import Workload


def check_workload(
    work: Workload, target: str, options: CheckOptions, *, progress: Progress | None = None
) -> Checkup:
    """Measure a workload with its phases and memory, observe it in every other way, and explain what was seen.

    Args:
        work: what to check.
        target: as it was typed.
        options: how much time to take, and which rules to ask.
        progress: told of the share done.

    Raises:
        UserProgramError: the very first step raised.
    """
    return explained(observe(work, target, options, progress), options)
