"""What one rank allocates, holds and frees."""

from __future__ import annotations

from typing import Annotated

from pyrometer.place import Place
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class MemoryTimeline(Record, frozen=True, kw_only=True):
    """A device's memory after each moment, at most 2000 of them; columns of equal length.

    Where there were more events, every stretch of them is stood for by its first, lowest, highest and last one, so that
    peaks are exact.
    """

    ts_ns: list[int] = []
    allocated_bytes: list[Bytes] = []
    reserved_bytes: Annotated[list[Bytes], doc("empty where the file does not say, and on the CPU")] = []
    num_events: Annotated[int, doc("before anything was left out")] = 0


class HeldMemory(Record, frozen=True, kw_only=True):
    """What one place holds at the peak."""

    where: Place
    held_bytes: Bytes
    num_blocks: int


class DeviceMemory(Record, frozen=True, kw_only=True):
    """One device; the CPU is one."""

    device: Annotated[str, doc("such as cpu, cuda:0")]
    is_relative: Annotated[
        bool, doc("the file holds no totals: bytes count from the start of the trace, and may be negative")
    ] = False
    num_allocations: int
    num_frees: int
    allocated_bytes: Annotated[Bytes, doc("sum over allocations")]
    freed_bytes: Bytes
    net_bytes: Annotated[Bytes, doc("allocated less freed")]
    peak_bytes: Annotated[Bytes, doc("highest allocated")]
    peak_ns: Annotated[int, doc("when it was first reached, on the clock of the file")]
    peak_step: Annotated[int | None, doc("row of the steps")] = None
    peak_where: Annotated[Place, doc("place of the allocation that reached it")]
    peak_reserved_bytes: Bytes | None = None
    at_peak_bytes: Annotated[
        dict[str, Bytes],
        doc(
            "what was held at the peak, by category; before_trace: allocated before it. Sums to peak_bytes; empty without addresses"
        ),
    ] = {}
    held_at_peak: Annotated[
        list[HeldMemory], doc("of what the trace saw allocated; the largest ten places")
    ] = []
    num_allocations_per_step: float
    allocated_bytes_per_step: float
    churn_bytes_per_step: Annotated[float, doc("allocated and freed again within the same step")]
    turnover: Annotated[float | None, doc("churn per step over the peak")] = None
    timeline: MemoryTimeline


class OpMemory(Record, frozen=True, kw_only=True):
    """Allocations of one operator on one device."""

    device: str
    op: Annotated[str | None, doc("null: outside of any operator")]
    num_allocations: int
    allocated_bytes: Bytes
    freed_bytes: Annotated[Bytes, doc("freed while the operator ran, whoever had allocated it")]
    temporary_bytes: Annotated[Bytes, doc("of allocated_bytes, freed within the same outermost operator")]
    churn_bytes: Annotated[Bytes, doc("of allocated_bytes, freed within the same step")]
    kept_bytes: Annotated[Bytes, doc("of allocated_bytes, not freed in the trace")]


class StepMemory(Record, frozen=True, kw_only=True):
    """One step on one device."""

    name: str
    device: str
    num_allocations: int
    allocated_bytes: Bytes
    freed_bytes: Bytes
    net_bytes: Annotated[Bytes, doc("a leak, where it stays above 0 step after step")]
    churn_bytes: Bytes
    peak_bytes: Annotated[Bytes, doc("highest allocated within the step")]


class AllocationSite(Record, frozen=True, kw_only=True):
    """Allocations of one place on one device."""

    device: str
    where: Place
    num_allocations: int
    allocated_bytes: Bytes
    churn_bytes: Bytes
    temporary_bytes: Bytes
    num_allocations_per_step: float
    churn_bytes_per_step: float
    turnover: Annotated[float | None, doc("churn per step over the peak of the device")] = None


class Memory(Record, frozen=True, kw_only=True):
    """Memory of one rank; empty where the trace was captured without `profile_memory`."""

    devices: list[DeviceMemory] = []
    ops: Annotated[list[OpMemory], doc("the most allocated bytes first")] = []
    steps: list[StepMemory] = []
    sites: Annotated[list[AllocationSite], doc("the most churn first, at most twenty")] = []
    num_steps: Annotated[int, doc("what per-step figures are divided by; 1 where the trace has no steps")] = 1
