"""What a check adds about training data: how it arrives, whether the step waits for it, and what a sample costs."""

from __future__ import annotations

import msgspec
from torch.utils.data import DataLoader

from pyrometer.bench.measurement import Measurement
from pyrometer.errors import PyrometerError
from pyrometer.loading.pipeline import observe_loading
from pyrometer.loading.profiling.profile import profile_samples
from pyrometer.loading.report import LoaderReport
from pyrometer.loading.verdict import retold
from pyrometer.quantity import Seconds
from pyrometer.rules.data.patterns.shares import measured_share
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.3
"""Share of the budget that observing the loader may take on top."""

SAMPLES_SHARE = 0.15
"""Share of the budget that looking at single samples may take on top."""

WORTH_LOOKING = 0.02
"""Of the step, that must go to data before single samples are looked at."""


def observe_feeding(
    work: Workload, measurement: Measurement | None = None, *, budget_s: Seconds
) -> tuple[LoaderReport | None, list[str]]:
    """Observe the loader of a training; what prevents it is told, since the measurement stands without.

    Args:
        work: what to observe.
        measurement: of it, whose share of data is then told in place of that of the watched steps.
        budget_s: how much time was given to measuring.
    """
    if not isinstance(work, Training):
        return None, []
    try:
        report = observe_loading(work, budget_s=BUDGET_SHARE * budget_s)
    except PyrometerError as error:
        return None, [f"the loader could not be observed: {error}"]
    measured = measured_share(measurement)
    if report is not None and measured is not None:
        told = retold(report, step_s=measured.step_s, data_s=measured.wait_s)
        report = msgspec.structs.replace(report, sentence=told)
    if report is None or report.data_share < WORTH_LOOKING or not isinstance(work.batches, DataLoader):
        return report, []
    try:
        samples = profile_samples(work.batches, budget_s=SAMPLES_SHARE * budget_s)
    except PyrometerError as error:
        return report, [f"single samples could not be looked at: {error}"]
    known = {one.slug for one in report.advice}
    more = [one for one in samples.advice if one.slug not in known]
    return msgspec.structs.replace(report, advice=[*report.advice, *more]), []
