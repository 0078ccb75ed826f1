"""From a schedule, links and steps measured alone to steps at any number of ranks. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record
from pyrometer.scaling.links import collective_s
from pyrometer.scaling.record import Binding, CollectiveCall, Links, ScalePrediction, Schedule
from pyrometer.scaling.stragglers import expected_slowest
from pyrometer.scaling.timeline import step_with

EFFICIENT = 0.9
"""From this efficiency on computing is what binds."""


class Alone(Record, frozen=True, kw_only=True):
    """The step on one rank, measured without communication.

    Attributes:
        times_s: of single steps.
        low_s: of the median, with `high_s`.
        units: that a step processes.
        peak_bytes: of memory; `None` where it was not measured.
        disturbed: whether other work ran on the machine, so that steps vary for reasons that other machines do not have.
    """

    times_s: list[Seconds]
    low_s: Seconds
    high_s: Seconds
    units: float
    peak_bytes: Bytes | None = None
    disturbed: bool = False

    @property
    def median_s(self) -> Seconds:
        """The step."""
        return float(np.median(self.times_s))


def predict(
    schedule: Schedule, alone: Alone, links: Links, *, price_per_hour: float | None = None
) -> ScalePrediction:
    """A step at the schedule's number of ranks, whose delays are independent of each other, from one wait to the next, too.

    The lower end has no rank late and links as fast as the fit's error allows; the upper end has links as slow.
    """
    ranks, own = schedule.ranks, schedule.wrapping_ratio
    slowest = expected_slowest(alone.times_s, ranks, schedule.num_waits)
    low_s = step_with(schedule, own * alone.low_s, _cost(schedule, links, 1 / (1 + links.inside.error)))
    high_s = step_with(schedule, own * alone.high_s * slowest, _cost(schedule, links, 1 + links.inside.error))
    cost = _cost(schedule, links, 1.0)
    without_s = step_with(schedule, own * alone.median_s, cost)
    late = 1.0 if alone.disturbed else slowest
    step_s = step_with(schedule, own * alone.median_s * late, cost)
    exposed_s, straggler_s = max(0.0, without_s - alone.median_s), max(0.0, step_s - without_s)
    efficiency = alone.median_s / step_s
    units_per_s = ranks * alone.units / step_s
    return ScalePrediction(
        ranks=ranks,
        step_s=step_s,
        low_s=min(low_s, step_s),
        high_s=max(high_s, step_s),
        compute_s=alone.median_s,
        exposed_s=exposed_s,
        straggler_s=straggler_s,
        efficiency=efficiency,
        units_per_s=units_per_s,
        peak_bytes=None if alone.peak_bytes is None else peak_of(schedule, alone.peak_bytes),
        binds=binding(efficiency, exposed_s, straggler_s),
        cost_per_million=None
        if price_per_hour is None
        else 1e6 * price_per_hour * ranks / 3600 / units_per_s,
    )


def binding(efficiency: Ratio, exposed_s: Seconds, straggler_s: Seconds) -> Binding:
    """What keeps a step from being shorter."""
    if efficiency >= EFFICIENT:
        return "compute"
    return "communication" if exposed_s >= straggler_s else "stragglers"


def peak_of(schedule: Schedule, alone_bytes: Bytes) -> Bytes:
    """A rank's peak: DDP adds its buckets, FSDP2 divides the state and adds what is gathered at once, twice with the one that follows."""
    if schedule.parallel == "ddp":
        return alone_bytes + schedule.trained_bytes
    kept = alone_bytes - schedule.state_bytes + schedule.state_bytes // schedule.ranks
    return max(kept, 0) + 2 * schedule.largest_unit_bytes


def _cost(schedule: Schedule, links: Links, factor: Ratio) -> Callable[[CollectiveCall], Seconds]:
    return lambda call: factor * collective_s(call.operation, call.bytes, schedule.ranks, links)
