"""What the workload is before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pyrometer.bench.measurement import Measurement
from pyrometer.errors import InputError, PyrometerError
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Bytes, Seconds
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.search.budget import Budget
from pyrometer.tuning.search.place import SearchPlace
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration


@dataclass
class Baseline:
    """What the workload is before anything is changed."""

    measurement: Measurement
    peak_bytes: Bytes
    surveyed: protocol.Surveyed
    environment: Environment

    @classmethod
    def of(
        cls, place: SearchPlace, side: OpenConfiguration, levers: Sequence[str], budget: Budget
    ) -> Baseline:
        """Measure it, see which levers fit, and write down what it computes.

        Raises:
            InputError: it does not run.
        """
        laboratory = place.laboratory
        measurement = laboratory.measure(side, budget.baseline_s)
        if not measurement.complete:
            raise InputError(
                f"{place.target}: {measurement.failure or 'the measurement was not complete'}; tune needs a workload that runs"
            )
        peak = laboratory.peak_bytes(side)
        planned = [name for name in levers if find_lever(name).for_memory]
        surveyed = laboratory.survey(side, [name for name in levers if name not in planned])
        if planned:
            surveyed = _with_planned(laboratory, surveyed, planned, budget.planning_s)
        laboratory.keep_reference(side)
        return cls(measurement, peak, surveyed, read_environment())


def _with_planned(
    laboratory: Laboratory, surveyed: protocol.Surveyed, levers: list[str], limit_s: Seconds
) -> protocol.Surveyed:
    """What was surveyed, and levers whose plan is measured, in a process of their own: it may take too long."""
    try:
        with laboratory.open(()) as side:
            more = laboratory.survey(side, levers, timeout_s=limit_s)
    except PyrometerError as error:
        reasons = dict.fromkeys(levers, f"whether it fits could not be found out: {error}")
        return replace(surveyed, refused=surveyed.refused | reasons)
    return replace(surveyed, refused=surveyed.refused | more.refused, choices=surveyed.choices | more.choices)
