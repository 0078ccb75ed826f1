"""How training data arrives, whether the step waits for it, and what a sample costs."""

from __future__ import annotations

import msgspec
from torch.utils.data import DataLoader

from pyrometer.bench.measurement import Measurement
from pyrometer.errors import PyrometerError
from pyrometer.evidence.busiest import busiest_line
from pyrometer.evidence.data_share import data_share, measured_share
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.loading.pipeline import observe_loading
from pyrometer.loading.profiling.profile import profile_samples
from pyrometer.loading.report import LoaderReport
from pyrometer.loading.verdict import retold
from pyrometer.trace.reporting.verdict import judge
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.1
"""Share of the budget that observing the loader may take on top."""

SAMPLES_SHARE = 0.08
"""Share of the budget that looking at single samples may take on top."""

WORTH_LOOKING = 0.02
"""Of the step, that must go to data before single samples are looked at."""


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Observe the loader of a training; where steps were measured, their share of data is told."""
    if not isinstance(work, Training):
        return seen
    options.progress(0.0, "observing the loader")
    try:
        report = observe_loading(work, budget_s=BUDGET_SHARE * options.budget_s)
    except PyrometerError as error:
        return seen.having(f"the loader could not be observed: {error}")
    if report is None:
        return seen
    report, notes = _with_samples(work, _as_measured(report, seen.evidence.measurement), options)
    data = data_share(seen.evidence.measurement, report)
    if seen.evidence.trace is None or data is None:
        return seen.having(*notes, loading=report)
    busiest = busiest_line(seen.evidence.host)
    verdict = judge(seen.evidence.trace, data_share=data.share, busiest=busiest)
    return seen.having(*notes, loading=report, trace_verdict=verdict)


def _as_measured(report: LoaderReport, measurement: Measurement | None) -> LoaderReport:
    """With the share of data in the measured steps in place of that of the watched ones."""
    measured = measured_share(measurement)
    if measured is None:
        return report
    sentence = retold(report, step_s=measured.step_s, data_s=measured.wait_s)
    return msgspec.structs.replace(report, sentence=sentence)


def _with_samples(
    work: Training, report: LoaderReport, options: ObserveOptions
) -> tuple[LoaderReport, list[str]]:
    """With what single samples cost, where data takes enough of the step."""
    if report.data_share < WORTH_LOOKING or not isinstance(work.batches, DataLoader):
        return report, []
    try:
        samples = profile_samples(work.batches, budget_s=SAMPLES_SHARE * options.budget_s)
    except PyrometerError as error:
        return report, [f"single samples could not be looked at: {error}"]
    known = {advice.slug for advice in report.advice}
    more = [advice for advice in samples.advice if advice.slug not in known]
    return msgspec.structs.replace(report, advice=[*report.advice, *more]), []
