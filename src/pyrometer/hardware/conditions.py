"""What else the machine was doing while something was measured."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc


class Conditions(Record, frozen=True, kw_only=True):
    """The machine's state over one measurement; `None` where the platform does not say."""

    load_average: Annotated[float | None, doc("1-minute load average at the end")] = None
    logical_cpus: Annotated[int, doc("CPUs that this process may use")] = 1
    competing_load: Annotated[float | None, doc("mean number of CPUs busy with other processes")] = None
    steal_share: Annotated[float | None, doc("share of CPU time that the hypervisor took, 0 to 1")] = None
    involuntary_switches_per_s: Annotated[float | None, doc("times per second that we were pushed off a CPU")] = None
    frequency_ratio: Annotated[float | None, doc("CPU clock at the end over the start")] = None
    throttled: Annotated[bool | None, doc("whether a CPU or GPU thermal or power limit was active")] = None
    gpu_clock_ratio: Annotated[float | None, doc("lowest over highest SM clock seen")] = None
    gpu_temperature_c: float | None = None
    other_gpu_processes: Annotated[int | None, doc("other processes on the GPU")] = None


class ConditionsProbe:
    """Reads the machine's state around a measurement."""

    def __init__(self) -> None:
        self.conditions: Conditions | None = None

    def __enter__(self) -> ConditionsProbe:
        return self

    def __exit__(self, *_error: object) -> None:
        self.conditions = None
