"""What all processes do now, as a document: what the terminal, the page and `--json` show."""

from __future__ import annotations

from typing import Annotated

from pyrometer.document import Document
from pyrometer.monitor.tick import Event, Source
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class CallNow(Record, frozen=True, kw_only=True):
    """One watched function of one process, over the last minute that it told of."""

    call: Annotated[str, doc("name of the watched function")]
    rate_hz: Annotated[float, doc("calls that ended per second")]
    num_ended: Annotated[int, doc("calls that returned")]
    num_failed: Annotated[int, doc("calls that raised")]
    errors: Annotated[dict[str, int], doc("calls that raised, per type of the exception")] = {}
    p50_s: Seconds | None = None
    p95_s: Seconds | None = None
    p99_s: Seconds | None = None
    in_flight: int = 0
    num_dropped: Annotated[int, doc("calls that returned, but whose latency found no room")] = 0


class ProcessNow(Record, frozen=True, kw_only=True):
    """One process that tells of itself."""

    source: Source
    silent_s: Annotated[Seconds, doc("since its last tick")]
    alarms: Annotated[list[str], doc("alarms that are on")] = []
    rungs: Annotated[dict[str, str], doc("where each ladder of degradation stands, per policy")] = {}
    memory_bytes: Annotated[float | None, doc("resident memory")] = None
    calls: list[CallNow] = []


class Moment(Record, frozen=True, kw_only=True):
    """One function over a few seconds, all processes of a model together."""

    model: str
    call: str
    at_s: Annotated[Seconds, doc("Unix time of its beginning")]
    rate_hz: Annotated[float, doc("calls that ended per second")]
    failed_hz: Annotated[float, doc("calls that raised per second")]
    p50_s: Seconds | None = None
    p95_s: Seconds | None = None
    p99_s: Seconds | None = None


class Change(Record, frozen=True, kw_only=True):
    """Something that began or ended in a process: an alarm, a step of degradation."""

    source: Source
    event: Event


class LiveDocument(Document, frozen=True, kw_only=True):
    """`pyrometer monitor live --json`, one per look that found new ticks; what the page is told, too."""

    at_s: Annotated[Seconds, doc("Unix time of the look")]
    processes: Annotated[list[ProcessNow], doc("those that alarm first")] = []
    changes: Annotated[list[Change], doc("the last ones, the newest first")] = []
    moments: Annotated[
        list[Moment], doc("what is over since the last document, of the last ten minutes")
    ] = []
