"""Chapters about devices and what crosses to them: idle time, waits, launches, kernels, copies, memory, collectives, roofline."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.quantity import format_bytes, format_rate, significant
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.report.facts.trace_words import (
    COPY_KINDS,
    HOST_DOINGS,
    IDLE_CAUSES,
    MOST_LISTED,
    OF_SPAN,
    ns,
    of_span,
    per_step,
    place,
    short,
)
from pyrometer.trace.naming.shapes import shape_words
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.records.rates import FLOP_OF


def _idle(report: RankReport) -> Section | None:
    idle = report.idle
    if not idle.attributed_ns:
        return None
    share = percent(idle.idle_ns / max(report.span_ns, 1))
    label, whose = ("idle", "no device worked, ") if idle.of == "device" else ("without an operator", "")
    facts = [Fact(label, ns(idle.idle_ns), f"{whose}{share} of the span")]
    apart = {
        "before the first work": idle.leading_ns,
        "after the last": idle.trailing_ns,
        "caused by the profiler": idle.profiler_ns,
    }
    facts += [Fact(name, ns(value), "set apart") for name, value in apart.items() if value]
    body = [
        (
            IDLE_CAUSES.get(group.cause, group.cause),
            percent(group.share),
            ns(group.total_ns),
            f"{group.num_gaps:,}",
            HOST_DOINGS.get(group.host, group.host),
            ", ".join(short(doing.name) for doing in group.doing if doing.name),
        )
        for group in idle.groups[:MOST_LISTED]
    ]
    columns = ("why", "of idle time", "time", "gaps", "meanwhile the host", "such as")
    table = Table(columns, body, frozenset({4, 5}))
    return Section(
        "idle",
        "Idle time" if idle.of == "device" else "Time outside of operators",
        facts,
        table,
        "Each gap is attributed on two axes: why the device had run dry, and what the host did most of the gap. Shares are of "
        "the idle time that is attributed, without what is set apart.",
        "A capture with Python stacks names functions and lines where this one names operators.",
    )


def _gaps(report: RankReport) -> Section:
    body = [
        (
            ns(gap.dur_ns),
            ns(gap.start_ns - report.origin_ns),
            IDLE_CAUSES.get(gap.cause, gap.cause),
            short(gap.host.name) or HOST_DOINGS.get(gap.host.kind, gap.host.kind),
            place(gap.where),
        )
        for gap in report.idle_gaps[:MOST_LISTED]
    ]
    return Section(
        "gaps",
        "The longest gaps",
        [],
        Table(("gap", "begins at", "why", "the host", "where"), body, frozenset({2, 3, 4})),
    )


def _syncs(report: RankReport) -> Section | None:
    if not report.sync_points:
        return None
    waited = report.synchronisation
    facts = [Fact("waits", f"{waited.num_calls:,}", f"{ns(waited.total_ns)} in all")]
    if waited.would_stall:
        facts.append(Fact("note", "there is no device here: these are cheap, and would each wait for one"))
    else:
        facts.append(Fact("stalled", ns(waited.stalled_ns), "beside work of the device"))
    per_step = max(len(report.steps), 1)
    body = [
        (
            point.name,
            f"{point.num_calls:,}",
            f"{point.num_calls / per_step:.3g}",
            ns(point.stalled_ns or point.total_ns),
            ns(point.device_idle_after_ns),
            place(point.where),
        )
        for point in report.sync_points[:MOST_LISTED]
    ]
    columns = ("call", "calls", "per step", "time", "device idle after", "where")
    return Section(
        "sync",
        "Synchronisation points",
        facts,
        Table(columns, body, frozenset({5})),
        "In each of these calls the host waits until a device has caught up, and can launch nothing meanwhile.",
    )


def _kernels(report: RankReport) -> Section | None:
    if not report.top_kernels:
        return None
    summary = report.kernels
    facts = [
        Fact("kernels", f"{summary.calls:,}", f"{summary.num_kernels:,} different"),
        Fact(
            "running",
            ns(report.kernel_busy_ns),
            f"{percent(report.kernel_busy_ns / max(report.span_ns, 1))} of the span, kernels that communicate included",
        ),
        Fact("median", ns(summary.median_ns)),
    ]
    if summary.tensor_core_ns:
        facts.append(
            Fact(
                "on tensor cores",
                percent(summary.tensor_core_ns / max(summary.total_ns, 1)),
                "of kernel time"
                + (
                    f"; of {percent(summary.unknown_core_ns / max(summary.total_ns, 1))} names do not say"
                    if summary.unknown_core_ns
                    else ""
                ),
            )
        )
    body = [
        (
            short(kernel.short_name),
            kernel.category,
            f"{kernel.calls:,}",
            ns(kernel.total_ns),
            percent(kernel.share),
            "–" if kernel.occupancy is None else percent(kernel.occupancy),
            place(kernel.where),
        )
        for kernel in report.top_kernels[:MOST_LISTED]
    ]
    columns = ("kernel", "category", "calls", "time", "of kernel time", "occupancy", "from")
    how = (
        "Shares are of the sum over all kernels. That sum exceeds the time in which kernels run where streams work at the same "
        "time. Occupancy is an estimate: resident threads over those that fit."
    )
    return Section("kernels", "Kernels", facts, Table(columns, body, frozenset({1, 6})), how)


def _launches(report: RankReport) -> Section | None:
    found, facts = report.launches, []
    if found.device is not None and found.device.num_work:
        on = found.device
        facts.append(Fact("launches per step", per_step(on.launches_per_step)))
        if on.after_call is not None:
            facts.append(
                Fact("launch to start", ns(on.after_call.median_ns), f"P95 {ns(on.after_call.p95_ns)}")
            )
        facts.append(Fact("kernels below 10 µs", f"{on.num_short:,}", f"{ns(on.short_ns)} in all"))
        facts.append(Fact("device waits for a launch", ns(on.waiting_ns)))
        sites, of_what = on.sites, "of device work"
    else:
        host = found.host
        facts.append(Fact("operators per step", per_step(host.ops_per_step)))
        if host.own is not None:
            facts.append(Fact("own time of an operator", ns(host.own.median_ns), "median"))
        if host.short_share is not None:
            facts.append(
                Fact(
                    "in short operators",
                    percent(host.short_share),
                    f"below {ns(host.short_limit_ns)}, of operator time",
                )
            )
        sites, of_what = host.sites, "of operator time"
    body = [
        (place(site.where), site.name, f"{site.calls:,}", ns(site.total_ns), percent(site.share))
        for site in sites
    ]
    columns = ("where", "most often", "calls", "time", of_what)
    table = Table(columns, body, frozenset({1})) if body else None
    return Section(
        "launches",
        "Launching" if report.num_kernels else "Dispatch",
        facts,
        table,
        "Short work costs about as much to issue as to run: these lines issue the most of it.",
    )


def _copies(report: RankReport) -> Section:
    body = [
        (
            f"{COPY_KINDS.get(kind.kind, kind.kind)}{', ' + kind.memory if kind.memory else ''}",
            f"{kind.num_copies:,}",
            format_bytes(kind.total_bytes),
            ns(kind.total_ns),
            "–" if kind.gb_per_s is None else f"{kind.gb_per_s:.3g} GB/s",
            ns(kind.exposed_ns),
            percent(kind.small_share),
        )
        for kind in report.copies.kinds
    ]
    columns = ("copies", "count", "bytes in all", "time", "rate", "not hidden", "below 64 KiB")
    how = "Not hidden is the part of the time in which nothing computes on the same device. The last column is a share of the count."
    return Section("copies", "Copies and fills", [], Table(columns, body), how)


def _memory(report: RankReport) -> Section | None:
    memory = report.memory
    if not memory.devices:
        return None
    facts = []
    for device in memory.devices:
        rise = "above the start of the trace" if device.is_relative else "allocated"
        facts.append(
            Fact(
                f"peak of the traced steps, {device.device}",
                format_bytes(device.peak_bytes),
                f"{rise}, {place(device.peak_where)}".rstrip(", "),
            )
        )
        churn = f"{format_bytes(device.churn_bytes_per_step)} of them freed again within it"
        facts.append(Fact("allocated per step", format_bytes(device.allocated_bytes_per_step), churn))
        facts.append(Fact("allocations per step", f"{device.num_allocations_per_step:,.4g}"))
    body = [
        (
            place(site.where) or "–",
            site.where.op or "",
            f"{site.num_allocations_per_step:,.4g}",
            format_bytes(site.churn_bytes_per_step),
            "–" if site.turnover is None else _turnover(site.turnover),
        )
        for site in memory.sites[:MOST_LISTED]
    ]
    columns = ("where", "operator", "allocations per step", "churn per step", "of the peak")
    return Section(
        "allocations",
        "Allocations",
        facts,
        Table(columns, body, frozenset({1})),
        "Churn is memory that is allocated and freed again within a step: many times the peak means that the same memory "
        "is filled and thrown away over and over.",
    )


def _collectives(report: RankReport) -> Section:
    body = [
        (
            f"{group.name} {group.dtype or ''}".strip(),
            f"{group.num_calls:,}",
            "–" if group.bytes is None else format_bytes(group.bytes),
            ns(group.total_ns) if group.num_timed else "–",
            ns(group.exposed_ns) if group.num_timed else "–",
            format_rate(group.bus_bandwidth, "B/s") if group.bus_bandwidth else "–",
            place(group.where),
        )
        for group in report.collectives[:MOST_LISTED]
    ]
    columns = ("collective", "calls", "messages together", "time", "not hidden", "bus", "from")
    how = (
        "Figures are of this rank alone: all of its calls together. Other ranks record the same messages, so that figures of "
        "several ranks must not be added up. A message is sized as nccl-tests does; the time holds the waiting for other ranks."
    )
    return Section("collectives", "Collectives of this rank", [], Table(columns, body, frozenset({6})), how)


def _turnover(times: float) -> str:
    """Churn over the peak.

    >>> _turnover(2.5), _turnover(0.00258)
    ('2.50×', '< 0.01×')
    """
    return "< 0.01×" if 0 < times < 0.01 else f"{significant(times)}×"


def _roofline(report: RankReport) -> Section | None:
    body = [
        (
            short(point.op) or "–",
            short(shape_words(point.shapes), 44),
            of_span(point.time_ns / max(report.span_ns, 1)),
            "–" if point.flop_per_s is None else format_rate(point.flop_per_s, "FLOP/s"),
            "–" if point.bytes_per_s is None else format_rate(point.bytes_per_s, "B/s"),
            "–" if point.share_of_roof is None else percent(point.share_of_roof),
            point.bound or "unknown",
        )
        for point in report.roofline[:MOST_LISTED]
        if point.flop is not None or point.num_bytes is not None
    ]
    if not body:
        return None
    used = report.utilisation
    facts = [
        Fact(
            "formulas cover",
            "–" if used.covered_share is None else percent(used.covered_share),
            "of the time of kernels" if report.num_kernels else "of the time of operators",
        )
    ]
    if used.flop_per_s:
        facts.append(Fact("over the span", format_rate(used.flop_per_s, "FLOP/s"), f"{used.flop:,} FLOP"))
    if used.mfu is not None:
        facts.append(Fact("MFU", percent(used.mfu), used.peaks_source or ""))
    if used.bandwidth_utilisation is not None:
        facts.append(Fact("of the memory bandwidth", percent(used.bandwidth_utilisation)))
    columns = ("operator", "shapes", OF_SPAN, "arithmetic", "traffic", "of the roof", "bound by")
    return Section(
        "roofline",
        "Against the hardware",
        facts,
        Table(columns, body, frozenset({1, 6})),
        "FLOP and bytes follow from shapes, by the formulas of each operator; traffic is the least that must move. Shares of the "
        "span are those of the operator's own time, as in its table.",
        "Caches make real traffic smaller and re-reads make it larger than what a formula can know; above 100 % of the roof, data "
        "stayed in a cache.",
    )


def _hardware_counters(report: RankReport) -> Section:
    body = [
        (
            row.op or "–",
            row.kernel,
            f"{row.calls:,}",
            "–" if row.flop is None else f"{row.flop:.4g}",
            ", ".join(
                f"{name} {value:.4g}"
                for name, value in row.counters.items()
                if row.flop is None or name not in FLOP_OF
            )
            or "–",
        )
        for row in report.hardware_counters
    ]
    columns = ("operator", "kernel", "calls", "FLOP", "counters")
    how = "Counted by the device. FLOP are those outside of tensor cores; counters are sums over calls, and means where their names do not end in `.sum`."
    return Section("counters", "Hardware counters", [], Table(columns, body), how)


CHAPTERS: tuple[Callable[[RankReport], Section | None], ...] = (
    _idle,
    _gaps,
    _syncs,
    _launches,
    _kernels,
    _copies,
    _memory,
    _collectives,
    _roofline,
    _hardware_counters,
)
"""In the order in which they are read."""
