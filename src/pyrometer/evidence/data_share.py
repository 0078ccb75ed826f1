"""The one share of a step that getting its data is said to take, whoever says it.

It is known from up to three kinds of steps: those that were measured, with nothing but their phases timed; those in which
the loader was watched; those that were traced. Samples that are made in Python are slow under a profiler with stacks, so that
the traced share is mostly too large. The first that is known is told; a page on the measurement tells all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from pyrometer.quantity import Ratio, Seconds

if TYPE_CHECKING:
    from pyrometer.bench.measurement import Measurement
    from pyrometer.loading.report import LoaderReport


class DataShare(NamedTuple):
    """Of a step as it runs without the profiler, on getting its data."""

    of: Literal["measured", "watched"]
    share: Ratio
    wait_s: Seconds
    step_s: Seconds

    @property
    def free_ratio(self) -> Ratio:
        """The step with data for free over the step."""
        return max(0.0, 1 - self.share)


def measured_share(measurement: Measurement | None) -> DataShare | None:
    """Of the measured steps, where their phases were timed."""
    if measurement is None or not measurement.complete:
        return None
    phase = next((time for time in measurement.phases if time.name == "data"), None)
    if phase is None or phase.share <= 0:
        return None
    return DataShare("measured", min(phase.share, 1.0), phase.mean_s, phase.mean_s / phase.share)


def watched_share(loading: LoaderReport) -> DataShare:
    """Of the steps that watched the loader."""
    return DataShare("watched", min(loading.data_share, 1.0), loading.wait_s, loading.measured_step_s)


def data_share(measurement: Measurement | None, loading: LoaderReport | None) -> DataShare | None:
    """The share that is told, where the loader was observed; a step that waits for no loader has none."""
    if loading is None:
        return None
    return measured_share(measurement) or watched_share(loading)
