"""What a page shows of idle time and waits: `idle/<rank>` is an `IdleTables`. Times are nanoseconds since the origin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Literal

from pyrometer.quantity import counted
from pyrometer.record import Record, doc
from pyrometer.report.attachments import MOST_RANKS, Attachments
from pyrometer.report.charts.tree import label
from pyrometer.report.documents import Document
from pyrometer.report.facts.layout import percent
from pyrometer.report.facts.trace_words import HOST_DOINGS, IDLE_CAUSES, ns
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.operators import reports_of
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.records.waiting import Idle, SyncPoint
from pyrometer.trace.view.table_record import GapColumns
from pyrometer.trace.view.tables import gap_columns, place_text

CAUSE_SLOTS = {
    "sync_drain": 6,
    "launch_starvation": 4,
    "between_collectives": 2,
    "dependency": 3,
    "turnaround": 1,
    "no_operator": 0,
    "unknown": 5,
}
"""Causes of idle time in the order in which they are drawn, and their place in the palette."""

DOING_SLOTS = {
    "data_loading": 0,
    "garbage_collection": 3,
    "allocator": 7,
    "sync": 6,
    "runtime": 8,
    "operator": 4,
    "python": 9,
    "annotation": 11,
    "nothing": 5,
}
"""What the host does, and its place in the palette: as in the breakdown where that tells the same."""

CAUSE_MEANINGS = {
    "sync_drain": "The host waited for the device in a call such as item() or a copy to the host; when it went on, nothing "
    "was queued. Remove the wait, or let it come after more work is launched.",
    "launch_starvation": "The host was busy with something else and launched too late. What it did is in the table: less "
    "of it, fewer and larger operators, CUDA graphs or torch.compile help.",
    "between_collectives": "The host issued one collective after another, and the device waited for each. Put more into each "
    "one, as buckets of gradients do, and start them while there is something to compute.",
    "dependency": "Work was launched in time and waited for an event or another stream.",
    "turnaround": "Work was launched in time; the device needed its few microseconds from one piece of work to the next.",
    "no_operator": "No operator ran on the host.",
    "unknown": "The launch of the work that ended the gap is not in the trace.",
}


class CauseShare(Record, frozen=True, kw_only=True):
    """All gaps of one cause; without devices, all in which the host mostly did one thing."""

    cause: Annotated[str, doc("in words")]
    meaning: Annotated[str, doc("and what helps; empty when the words say it all")]
    slot: Annotated[int, doc("place in the palette")]
    num_gaps: int
    total_ns: int
    share: Annotated[float, doc("of all attributed idle time")]


class GroupColumns(Record, frozen=True, kw_only=True):
    """Gaps by cause and by what the host mostly did, the largest first."""

    cause: list[str] = []
    doing: list[str] = []
    total_ns: list[int] = []
    share: list[float] = []
    num_gaps: list[int] = []
    after_short_ns: Annotated[list[int], doc("of total_ns: in gaps that follow a kernel below 10 µs")] = []
    such_as: Annotated[list[str], doc("what it did the longest, with times")] = []


class SyncColumns(Record, frozen=True, kw_only=True):
    """Places at which the host waited, the longest stall first."""

    name: list[str] = []
    where: list[str | None] = []
    num_calls: list[int] = []
    per_step: list[float | None] = []
    total_ns: Annotated[list[int], doc("how long the host was in the calls")] = []
    max_ns: list[int] = []
    stalled_ns: Annotated[list[int], doc("of the total, while a device was at work")] = []
    idle_after_ns: Annotated[list[int], doc("idle time of devices that drained during one of the calls")] = []
    calls: Annotated[list[str], doc("calls inside that waited")] = []
    waited_for: list[str | None] = []
    thread: list[str | None] = []


class StreamColumns(Record, frozen=True, kw_only=True):
    """Gaps between consecutive work of each stream."""

    stream: list[str] = []
    num_gaps: list[int] = []
    idle_ns: list[int] = []
    host_wait_ns: list[int] = []
    kernel_wait_ns: list[int] = []
    other_wait_ns: list[int] = []
    unknown_ns: list[int] = []


class IdleTables(Record, frozen=True, kw_only=True):
    """One rank's idle time, waits and launches."""

    rank: int
    span_ns: int
    of: Annotated[str, doc("device, or host in a trace without device work")]
    headline: Annotated[str, doc("how much was idle, in a sentence")]
    apart: Annotated[list[str], doc("idle time that is set apart and not attributed, a sentence each")] = []
    by: Annotated[
        Literal["cause", "doing"], doc("column of the gaps by which `causes` parts the idle time")
    ] = "cause"
    causes: list[CauseShare] = []
    groups: GroupColumns = GroupColumns()
    gaps: Annotated[GapColumns, doc("cause and doing in words")] = GapColumns()
    num_gaps: int = 0
    unlisted: Annotated[str | None, doc("gaps that are not listed, in a sentence")] = None
    syncs: SyncColumns = SyncColumns()
    sync_note: Annotated[str, doc("what the waits cost in all, in a sentence; empty without any")] = ""
    would_stall: Annotated[bool, doc("no device work: the points would wait if there were a device")] = False
    streams: StreamColumns = StreamColumns()


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """A block per rank with anything to show; of two recordings of one rank the first."""
    gaps: dict[int, GapColumns] = {}
    for tables in attachments.tables:
        gaps.setdefault(tables.rank, tables.gaps)
    seen: set[int] = set()
    for report in reports_of(document)[:MOST_RANKS]:
        if report.rank in seen:
            continue
        seen.add(report.rank)
        found = idle_tables(report, gaps.get(report.rank))
        if found.causes or found.syncs.name:
            yield block_of(f"idle/{report.rank}", found)


def idle_tables(report: RankReport, gaps: GapColumns | None = None) -> IdleTables:
    """The tables of one rank; `gaps` are more than the report keeps, where they are at hand."""
    idle, waited = report.idle, report.synchronisation
    listed = _in_words(gaps or gap_columns(idle, report.origin_ns))
    return IdleTables(
        rank=report.rank,
        span_ns=report.span_ns,
        of=idle.of,
        headline=_headline(report),
        apart=_apart(idle),
        by="cause" if idle.of == "device" else "doing",
        causes=_causes(idle) if idle.of == "device" else _doings(idle),
        groups=_groups(idle),
        gaps=listed,
        num_gaps=idle.num_gaps,
        unlisted=_unlisted(idle, listed),
        syncs=_syncs(waited.points, len(report.steps)),
        sync_note=_sync_note(report),
        would_stall=waited.would_stall,
        streams=_streams(idle),
    )


def _headline(report: RankReport) -> str:
    idle = report.idle
    of = "The devices were idle" if idle.of == "device" else "No operator ran"
    return f"{of} for {ns(idle.idle_ns)}, {percent(idle.idle_ns / max(report.span_ns, 1))} of the span."


def _apart(idle: Idle) -> list[str]:
    kinds = {
        "before the first work of a device": idle.leading_ns,
        "after its last": idle.trailing_ns,
        "in gaps that the profiler itself caused": idle.profiler_ns,
    }
    return [f"{ns(value)} {what}" for what, value in kinds.items() if value]


def _causes(idle: Idle) -> list[CauseShare]:
    numbers: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for group in idle.groups:
        numbers[group.cause][0] += group.num_gaps
        numbers[group.cause][1] += group.total_ns
    order = {cause: place for place, cause in enumerate(CAUSE_SLOTS)}
    return [
        CauseShare(
            cause=IDLE_CAUSES.get(cause, cause),
            meaning=CAUSE_MEANINGS.get(cause, ""),
            slot=CAUSE_SLOTS.get(cause, 9),
            num_gaps=number,
            total_ns=total,
            share=total / max(idle.attributed_ns, 1),
        )
        for cause, (number, total) in sorted(numbers.items(), key=lambda item: order.get(item[0], len(order)))
    ]


def _doings(idle: Idle) -> list[CauseShare]:
    """Without devices all gaps have one cause: what the host did parts them."""
    return [
        CauseShare(
            cause=HOST_DOINGS.get(group.host, group.host),
            meaning="",
            slot=DOING_SLOTS.get(group.host, 9),
            num_gaps=group.num_gaps,
            total_ns=group.total_ns,
            share=group.share,
        )
        for group in idle.groups
    ]


def _groups(idle: Idle) -> GroupColumns:
    groups = idle.groups
    return GroupColumns(
        cause=[IDLE_CAUSES.get(group.cause, group.cause) for group in groups],
        doing=[HOST_DOINGS.get(group.host, group.host) for group in groups],
        total_ns=[group.total_ns for group in groups],
        share=[group.share for group in groups],
        num_gaps=[group.num_gaps for group in groups],
        after_short_ns=[group.after_short_ns for group in groups],
        such_as=[
            ", ".join(
                f"{label(activity.name)} {ns(activity.total_ns)}" for activity in group.doing if activity.name
            )
            for group in groups
        ],
    )


def _in_words(gaps: GapColumns) -> GapColumns:
    return GapColumns(
        **{
            **{name: getattr(gaps, name) for name in gaps.__struct_fields__},
            "cause": [IDLE_CAUSES.get(cause, cause) for cause in gaps.cause],
            "doing": [HOST_DOINGS.get(kind, kind) for kind in gaps.doing],
        }
    )


def _unlisted(idle: Idle, listed: GapColumns) -> str | None:
    number = idle.num_gaps - listed.num_listed
    if number <= 0:
        return None
    rest = idle.attributed_ns - sum(listed.dur_ns)
    return f"The {listed.num_listed:,} longest of {counted(idle.num_gaps, 'gap')} are listed; the others take {ns(rest)} together."


def _syncs(points: list[SyncPoint], num_steps: int) -> SyncColumns:
    return SyncColumns(
        name=[point.name for point in points],
        where=[place_text(point.where) for point in points],
        num_calls=[point.num_calls for point in points],
        per_step=[point.num_calls / num_steps if num_steps else None for point in points],
        total_ns=[point.total_ns for point in points],
        max_ns=[point.max_ns for point in points],
        stalled_ns=[point.stalled_ns for point in points],
        idle_after_ns=[point.device_idle_after_ns for point in points],
        calls=[", ".join(point.calls) for point in points],
        waited_for=[point.waited_for for point in points],
        thread=[point.thread for point in points],
    )


def _sync_note(report: RankReport) -> str:
    waited = report.synchronisation
    if not waited.points:
        return ""
    calls = f"{counted(waited.num_calls, 'wait')}, {ns(waited.total_ns)} in all"
    if waited.would_stall:
        return f"{calls}. There is no device here: these are cheap, and would each wait for one."
    share = percent(waited.stalled_ns / max(report.span_ns, 1))
    return (
        f"{calls}; for {ns(waited.stalled_ns)} of it, {share} of the span, a device was at work, and it was idle for "
        f"{ns(waited.device_idle_after_ns)} after it had drained."
    )


def _streams(idle: Idle) -> StreamColumns:
    streams = idle.by_stream
    return StreamColumns(
        stream=[f"device {stream.device}, stream {stream.stream}" for stream in streams],
        num_gaps=[stream.num_gaps for stream in streams],
        idle_ns=[stream.idle_ns for stream in streams],
        host_wait_ns=[stream.host_wait_ns for stream in streams],
        kernel_wait_ns=[stream.kernel_wait_ns for stream in streams],
        other_wait_ns=[stream.other_wait_ns for stream in streams],
        unknown_ns=[stream.unknown_ns for stream in streams],
    )
