"""What a snapshot tells, as a record."""

from __future__ import annotations

from typing import Annotated, Any

from pyrometer.advice import Advice
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.timeline import Timeline
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc


class Fragmentation(Record, frozen=True, kw_only=True):
    """How much of what the allocator held was in use at one instant, and why the rest was not.

    reserved = allocated + pending_free + inactive_split + cached_whole, exactly.
    """

    event: Annotated[int, doc("number of the event after which it was; -1 before the first")]
    time_s: Annotated[Seconds | None, doc("since the first event; null without a clock")] = None
    reserved_bytes: Annotated[Bytes, doc("taken from the device")]
    allocated_bytes: Annotated[Bytes, doc("in blocks in use, with what rounding adds to them")]
    pending_free_bytes: Annotated[Bytes, doc("freed, but perhaps still used by another stream")]
    inactive_split_bytes: Annotated[
        Bytes, doc("free, but in segments of which another part is in use: cannot be returned to the device")
    ]
    cached_whole_bytes: Annotated[Bytes, doc("free, in whole segments or pages: empty_cache would return it")]
    rounding_bytes: Annotated[Bytes, doc("of allocated_bytes, what nobody asked for")]
    free_bytes: Annotated[Bytes, doc("inactive_split and cached_whole")]
    largest_free_bytes: Annotated[Bytes, doc("largest free stretch")]
    free_blocks: Annotated[int, doc("free stretches")]
    external: Annotated[Ratio, doc("1 − largest free / free: 0 when all that is free lies in one piece")]
    unused: Annotated[Ratio, doc("1 − allocated / reserved")]


class PeakFragmentation(Record, frozen=True, kw_only=True):
    """Fragmentation when it matters, and at the end, when it usually does not."""

    at_peak: Annotated[Fragmentation | None, doc("when most was allocated; null without a history")] = None
    at_reserved_peak: Annotated[Fragmentation | None, doc("when most was reserved")] = None
    at_oom: Annotated[list[Fragmentation], doc("at each failed request")] = []
    at_end: Annotated[
        Fragmentation | None, doc("when the snapshot was taken; null when the file has no segments")
    ] = None


class FailedRequest(Record, frozen=True, kw_only=True):
    """A request that ended in an OutOfMemoryError."""

    event: int
    time_s: Seconds | None = None
    request_bytes: Bytes
    device_free_bytes: Annotated[Bytes, doc("what the device still had, by its own account")]
    allocator_free_bytes: Annotated[Bytes, doc("free within what the allocator held")]
    usable_free_bytes: Annotated[Bytes, doc("of that, in the request's own stream and pool")]
    largest_free_bytes: Annotated[Bytes, doc("largest free stretch that the request could have used")]
    free_blocks: Annotated[int, doc("free stretches that it could have used")]
    allocated_bytes: Bytes
    reserved_bytes: Bytes
    site: str
    held: Annotated[list[HeldBytes], doc("who held most at that instant")] = []
    sentence: Annotated[str, doc("the same in one sentence")]


class CacheRelease(Record, frozen=True, kw_only=True):
    """Segments given back to the device in one go."""

    event: int
    time_s: Seconds | None = None
    reason: Annotated[str, doc("empty_cache: the program asked; retry: the device had no more to give")]
    released_bytes: Bytes
    segments: int


class SettingsReport(Record, frozen=True, kw_only=True):
    """How the allocator was set up."""

    text: Annotated[str | None, doc("of the environment variable; null when the file does not tell")] = None
    values: Annotated[dict[str, Any], doc("as recorded")] = {}
    problems: Annotated[list[str], doc("what torch rejects or ignores without a word")] = []


class Simulation(Record, frozen=True, kw_only=True):
    """How well the simulated allocator repeats what was recorded."""

    events: Annotated[int, doc("allocations and frees that were replayed")]
    recorded_peak_reserved_bytes: Bytes
    simulated_peak_reserved_bytes: Bytes
    error: Annotated[float, doc("simulated over recorded, minus one")]
    trusted: Annotated[bool, doc("within a tenth, so that figures for other settings are given")]


class DeviceReport(Record, frozen=True, kw_only=True):
    """One device."""

    device: int
    events: int
    peak_bytes: Annotated[Bytes, doc("most that was allocated at one time, as rounded by the allocator")]
    peak_event: Annotated[int, doc("number of the event after which it was; -1 before the first")] = -1
    peak_time_s: Annotated[Seconds | None, doc("since the first event")] = None
    peak_phase: Annotated[str | None, doc("what ran then; null when no stack tells")] = None
    peak_reserved_bytes: Bytes = 0
    ledger_bytes: Annotated[dict[str, Bytes], doc("by category at the peak; they add up to peak_bytes")] = {}
    timeline: Timeline = Timeline()
    at_peak: Annotated[list[HeldBytes], doc("who held the peak, most first")] = []
    at_end: Annotated[list[HeldBytes], doc("who holds memory when the snapshot was taken")] = []
    fragmentation: PeakFragmentation = PeakFragmentation()
    oom: list[FailedRequest] = []
    releases: list[CacheRelease] = []
    retries: Annotated[int, doc("how often the device refused and cached segments were given back")] = 0
    capacity_bytes: Annotated[Bytes | None, doc("what the device could give; null when it never refused")] = (
        None
    )
    simulation: Simulation | None = None
    advice: list[Advice] = []
    notes: list[str] = []


class SnapshotReport(Record, frozen=True, kw_only=True):
    """What a snapshot tells. The top level speaks of the device with the highest peak; `devices` holds all."""

    path: str
    device: Annotated[int | None, doc("which device the top level speaks of; null for an empty snapshot")]
    peak_bytes: Annotated[Bytes, doc("most that was allocated at one time")]
    peak_reserved_bytes: Bytes = 0
    ledger_bytes: dict[str, Bytes] = {}
    timeline: Timeline = Timeline()
    at_peak: list[HeldBytes] = []
    at_end: list[HeldBytes] = []
    fragmentation: PeakFragmentation = PeakFragmentation()
    oom: list[FailedRequest] = []
    retries: int = 0
    advice: list[Advice] = []
    settings: SettingsReport = SettingsReport()
    notes: Annotated[list[str], doc("what the file does not tell")] = []
    devices: list[DeviceReport] = []
