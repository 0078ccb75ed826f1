"""What a check adds about training data: how it arrives, and whether the step waits for it."""

from __future__ import annotations

from pyrometer.errors import PyrometerError
from pyrometer.loading.pipeline import observe_loading
from pyrometer.loading.report import LoaderReport
from pyrometer.quantity import Seconds
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.3
"""Share of the budget that observing the loader may take on top."""


def observe_feeding(work: Workload, *, budget_s: Seconds) -> tuple[LoaderReport | None, list[str]]:
    """Observe the loader of a training; what prevents it is told, since the measurement stands without."""
    if not isinstance(work, Training):
        return None, []
    try:
        return observe_loading(work, budget_s=BUDGET_SHARE * budget_s), []
    except PyrometerError as error:
        return None, [f"the loader could not be observed: {error}"]
