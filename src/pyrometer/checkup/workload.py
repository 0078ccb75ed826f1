"""Checking a workload: measured, with its phases and its memory."""

from __future__ import annotations

from pyrometer.bench.measure import Progress, measure
from pyrometer.bench.quality import Circumstances
from pyrometer.checkup.checkup import Checkup
from pyrometer.hardware.environment import read_environment
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Workload


def check_workload(
    work: Workload, target: str, *, budget_s: Seconds, confidence: float, progress: Progress | None = None
) -> Checkup:
    """Measure a workload with its phases and memory.

    Raises:
        UserProgramError: the very first step raised.
    """
    asked = Circumstances(command=f"pyrometer check {target}", budget_s=budget_s)
    measurement = measure(
        work, budget_s=budget_s, confidence=confidence, circumstances=asked, progress=progress
    )
    return Checkup(
        target=target,
        measurement=measurement,
        phases=measurement.phases,
        memory=measurement.memory,
        environment=read_environment(),
    )
