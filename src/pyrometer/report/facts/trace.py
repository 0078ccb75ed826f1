"""A trace in words: where the time goes, what bounds it, what could be won back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pyrometer.quantity import format_bytes, format_rate, format_ratio, format_seconds
from pyrometer.report.charts.shares import Share
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.trace.analysis.breakdown import Parts
from pyrometer.trace.analysis.recoverable import Recoverable
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.program.where import Where
from pyrometer.trace.reporting.rank_report import RankReport

T = TypeVar("T")

MOST_LISTED = 10
"""Rows of a table on the page; the document holds more."""

MOST_PARTS = 5
"""Parts of the breakdown that a table with a row per step or rank has columns for."""

WORTH_LISTING = 0.99
"""A change that would leave more of the time than this is not worth a row."""

PART_SLOTS = {
    "compute": 2,
    "exposed_comm": 3,
    "exposed_memcpy": 1,
    "memset": 7,
    "sync": 6,
    "runtime": 8,
    "data": 0,
    "host": 4,
    "other": 9,
    "idle": 5,
}
"""Parts of the breakdown, and their place in the palette."""

PART_NAMES = {
    "compute": "compute",
    "exposed_comm": "exposed communication",
    "exposed_memcpy": "exposed copies",
    "memset": "fills",
    "sync": "synchronisation",
    "runtime": "launching",
    "data": "data loading",
    "host": "operators on the host",
    "other": "Python",
    "idle": "nothing recorded",
}


IDLE_CAUSES = {
    "sync_drain": "the host had waited for the device",
    "launch_starvation": "nothing was launched in time",
    "turnaround": "the device's turn-around",
    "dependency": "waited for an event or another stream",
    "unknown": "the launch is not in the trace",
    "no_operator": "no operator ran",
}

HOST_DOINGS = {
    "data_loading": "loaded data",
    "garbage_collection": "collected garbage",
    "allocator": "allocated device memory",
    "sync": "waited for the device",
    "runtime": "launched",
    "operator": "ran operators",
    "python": "ran Python",
    "annotation": "was between operators",
    "nothing": "nothing recorded",
}


PATH_CLASSES = {
    "memcpy": "copies",
    "memset": "fills",
    "launch": "launch latency",
    "sync": "waiting in a call",
    "host_op": "operators on the host",
    "python": "Python",
    "untraced": "nothing recorded",
}


DRAWN = frozenset({"tree"})
"""Chapters that are a drawing, and so have their place only on a page."""

CHECK_CHAPTERS = frozenset(
    {"breakdown", "gains", "phases", "lines", "modules", "operators", "sync", "roofline"}
)


def short(text: str | None, most: int = 60) -> str:
    """A name that fits a table: the end of a long one is cut.

    >>> short("a" * 70)[-3:], short(None)
    ('aa…', '')
    """
    return "" if text is None else text if len(text) <= most else text[: most - 1] + "…"


def ns(value: float | None) -> str:
    """Nanoseconds with a fitting unit.

    >>> ns(1500), ns(None)
    ('1.50 µs', '–')
    """
    return format_seconds(None if value is None else value * 1e-9)


def place(where: Where) -> str:
    """A place in one line: the source line if it is known, else module or operator.

    >>> place(Where(file="train.py", line=12, function="step", op="aten::item"))
    'train.py:12 step'
    >>> place(Where(module="Linear_0")), place(Where(module="3")), place(Where())
    ('Linear_0', 'module 3', '')
    """
    if where.file is not None:
        return f"{short_path(where.file)}:{where.line} {where.function or ''}".rstrip()
    module = f"module {where.module}" if (where.module or "").isdigit() else where.module
    return module or where.op or where.phase or ""


def short_path(path: str) -> str:
    """The end of a long path.

    >>> short_path("a/b.py"), short_path("/home/me/project/src/model/layers.py")
    ('a/b.py', '…/model/layers.py')
    """
    parts = path.split("/")
    return path if len(parts) <= 3 else "…/" + "/".join(parts[-2:])


def part_shares(parts: Parts) -> list[Share]:
    """The parts that are not empty, in the order in which they are drawn."""
    total = parts.total_ns
    found = [(name, getattr(parts, name)) for name in PART_SLOTS]
    return [
        Share(PART_NAMES[name], value / total, ns(value), PART_SLOTS[name]) for name, value in found if value
    ]


def part_table(parts: Parts) -> Table:
    """The same as a table."""
    rows = [(share.name, percent(share.share), share.said) for share in part_shares(parts)]
    return Table(("where", "share", "time"), rows)


def widest_parts(sums_ns: Mapping[str, int]) -> list[str]:
    """The largest parts, in the order in which they are drawn: as many as have room beside each other in a table.

    >>> widest_parts({"data": 5, "compute": 9, "idle": 0})
    ['compute', 'data']
    """
    held = sorted((name for name, ns in sums_ns.items() if ns), key=lambda name: -sums_ns[name])[:MOST_PARTS]
    return [name for name in PART_SLOTS if name in held]


def median_step(report: RankReport) -> int:
    """The middle length of its steps, ns."""
    lengths = sorted(step.end_ns - step.start_ns for step in report.steps)
    return lengths[len(lengths) // 2]


def sections(report: RankReport, capture: Capture | None = None) -> list[Section]:
    """The chapters of one rank's trace, in the order in which an expert reads a profile; empty ones are left out."""
    made = [chapter(report) for chapter in CHAPTERS]
    if capture is not None:
        made.append(_capture(capture))
    return [section for section in made if section is not None and (section.facts or section.table)]


def check_sections(report: RankReport, capture: Capture | None) -> list[Section]:
    """The chapters that a check prints on a terminal; its page has all."""
    return [section for section in sections(report, capture) if section.slug in CHECK_CHAPTERS]


def _capture(capture: Capture) -> Section:
    facts = [
        Fact(
            "steps",
            f"{capture.num_steps}",
            f"{capture.num_events:,} events, {format_bytes(capture.raw_bytes)}",
        )
    ]
    if capture.step_traced_s is not None and capture.step_untraced_s is not None:
        bare, slowed = format_seconds(capture.step_untraced_s), format_seconds(capture.step_traced_s)
        facts.append(Fact("a step", f"{slowed} under the profiler", f"{bare} without it"))
    if capture.overhead_ratio is not None:
        interval = ""
        if capture.overhead_low is not None and capture.overhead_high is not None:
            interval = f"{capture.overhead_low:.3g}–{capture.overhead_high:.3g}"
        facts.append(Fact("overhead", f"{capture.overhead_ratio:.3g}×", interval))
    facts += [Fact("note", note) for note in capture.notes]
    how = "Small operators look larger under a profiler than they are: trust shares of a trace, and times of a measurement."
    return Section("capture", "How the trace was taken", facts, None, how)


def _gains(report: RankReport) -> Section | None:
    body = [
        (
            _changed(gain),
            ns(gain.gain_ns),
            predicted(gain.ratio, gain.ratio_low, gain.ratio_high),
            gain.what.partition(":")[0],
            place(gain.where),
        )
        for gain in report.recoverable[:MOST_LISTED]
        if gain.ratio <= WORTH_LISTING
    ]
    columns = ("if this were better", "gain", "of the whole", "which means", "where")
    return (
        Section(
            "gains",
            "What could be won back",
            [],
            Table(columns, body, frozenset({3, 4})),
            "Predicted by replaying the trace with that part shortened and everything else as it depends on it: work that is "
            "hidden behind other work wins nothing. An operator's or a line's own part is what runs directly within it, with its device "
            "work. An interval is what delays without a recorded cause leave open.",
            "A prediction is a hypothesis: make the change, and measure it with pyrometer bench --vs.",
        )
        if body
        else None
    )


def predicted(ratio: float, low: float, high: float) -> str:
    """A predicted ratio; its interval only where delays without a cause leave something open.

    >>> predicted(0.5, 0.5, 0.5), predicted(0.5, 0.4, 0.5)
    ('2.00× faster', '2.00× faster (2.00–2.50)')
    """
    text = format_ratio(ratio, low, high)
    return text if f"{low:.3g}" != f"{high:.3g}" else text.partition(" (")[0]


def _changed(gain: Recoverable) -> str:
    if gain.kind == "line" and gain.where.file is not None:
        return f"{short_path(gain.where.file)}:{gain.where.line} {gain.where.function or ''}".rstrip()
    return short(gain.name)


def _trust(report: RankReport) -> Section:
    facts = [Fact("confidence", report.confidence)]
    facts += [Fact(issue.severity, issue.message) for issue in report.health if issue.severity != "info"]
    facts += [Fact("repaired", repair.message) for repair in report.repaired]
    facts += [Fact("note", issue.message) for issue in report.health if issue.severity == "info"]
    return Section("health", "Can the trace be trusted?", facts)


def _where_to(report: RankReport) -> Section:
    table = part_table(report.breakdown_ns)
    return Section(
        "breakdown",
        "Where the time goes",
        [],
        table,
        "Every moment of the span counts once: first what a device does, then, while all devices are idle, what the "
        "host does. The parts sum to the span to the nanosecond.",
        "The profiler slows the host more than the device: shares of host time are upper bounds.",
    )


def _steps(report: RankReport) -> Section | None:
    if len(report.steps) < 2:
        return None
    names = widest_parts(
        {name: sum(getattr(step.parts, name) for step in report.steps) for name in PART_SLOTS}
    )
    body = [
        (step.name, ns(step.end_ns - step.start_ns), *(ns(getattr(step.parts, name)) for name in names))
        for step in report.steps[:MOST_LISTED]
    ]
    columns = ("step", "length", *(PART_NAMES[name] for name in names))
    return Section("steps", "Steps", [], Table(columns, body))


def _idle(report: RankReport) -> Section | None:
    found = report.idle
    if not found.attributed_ns:
        return None
    facts = [
        Fact(
            "idle",
            ns(found.idle_ns),
            f"of the {found.of}, {percent(found.idle_ns / max(report.span_ns, 1))} of the span",
        )
    ]
    apart = {"leading": found.leading_ns, "trailing": found.trailing_ns, "the profiler's": found.profiler_ns}
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
        for group in found.groups[:MOST_LISTED]
    ]
    table = Table(("why", "share", "time", "gaps", "meanwhile the host", "such as"), body, frozenset({4, 5}))
    return Section(
        "idle",
        "Idle time" if found.of == "device" else "Time outside of operators",
        facts,
        table,
        "Each gap is attributed on two axes: why the device had run dry, and what the host did most of the gap.",
        "A capture with Python stacks names functions and lines where this one names operators.",
    )


def _gaps(report: RankReport) -> Section | None:
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
    return (
        Section(
            "gaps",
            "The longest gaps",
            [],
            Table(("gap", "begins at", "why", "the host", "where"), body, frozenset({2, 3, 4})),
        )
        if body
        else None
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


def _ops(report: RankReport) -> Section | None:
    body = [
        (
            op.name,
            f"{op.calls:,}",
            ns(op.host_self_ns),
            percent(op.host_share),
            *((ns(op.device_self_ns), percent(op.device_share)) if report.num_kernels else ()),
        )
        for op in _heaviest(report.top_ops, report)[:MOST_LISTED]
    ]
    columns = ("operator", "calls", "host", "share", *(("device", "share") if report.num_kernels else ()))
    return (
        Section(
            "operators",
            "Operators",
            [],
            Table(columns, body),
            "Times are the operator's own: nested operators have rows of their own. Shares are of the span.",
        )
        if body
        else None
    )


def _lines(report: RankReport) -> Section | None:
    by = "device_ns" if report.num_kernels else "self_ns"
    ordered = sorted(report.top_lines, key=lambda line: getattr(line, by), reverse=True)
    body = [
        (
            f"{short_path(line.file or '')}:{line.line} {line.function or ''}".rstrip(),
            ns(line.self_ns),
            percent(line.host_share),
            *((ns(line.device_ns), percent(line.device_share)) if report.num_kernels else ()),
            f"{line.num_ops:,}",
            ", ".join(op.name for op in line.top_ops[:2]),
        )
        for line in ordered[:MOST_LISTED]
    ]
    columns = (
        "function",
        "host",
        "share",
        *(("device", "share") if report.num_kernels else ()),
        "operators",
        "mostly",
    )
    return (
        Section(
            "lines",
            "Functions of the program",
            [],
            Table(columns, body, frozenset({len(columns) - 1})),
            "Time belongs to the innermost function of your own code around it, backward operators to the function that ran "
            "them forward. The line is the one at which the function begins.",
        )
        if body
        else None
    )


def _modules(report: RankReport) -> Section | None:
    by = "device_self_ns" if report.num_kernels else "host_self_ns"
    ordered = sorted(report.top_modules, key=lambda module: getattr(module, by), reverse=True)
    body = [
        (
            module.module or "",
            f"{module.calls:,}",
            ns(module.host_self_ns),
            ns(module.forward_ns),
            ns(module.backward_ns),
            percent(module.host_share),
            *((ns(module.device_total_ns), percent(module.device_share)) if report.num_kernels else ()),
        )
        for module in ordered[:MOST_LISTED]
    ]
    columns = (
        "module",
        "calls",
        "own",
        "forward",
        "backward",
        "share",
        *(("device", "share") if report.num_kernels else ()),
    )
    how = "Own leaves submodules out; the other times hold them. Backward operators count for the module that ran forward."
    return Section("modules", "Modules", [], Table(columns, body), how) if body else None


def _phases(report: RankReport) -> Section | None:
    body = [
        (
            phase.name,
            ns(phase.host_ns),
            percent(phase.host_share),
            *((ns(phase.device_ns),) if report.num_kernels else ()),
            phase.source,
        )
        for phase in report.phases.phases
    ]
    columns = ("phase", "host", "share", *(("device",) if report.num_kernels else ()), "told by")
    return Section("phases", "Phases", [], Table(columns, body)) if body else None


def _tree(report: RankReport) -> Section | None:
    if not report.call_tree:
        return None
    weighed = "device work that was launched below it" if report.device_busy_ns else "host time"
    facts = [Fact("width", weighed), Fact("nodes", f"{len(report.call_tree):,}", "small ones put together")]
    return Section(
        "tree",
        "Call tree",
        facts,
        None,
        "Each box lies under its caller and is as wide as its share; all calls on the same path are one box. Point at one "
        "to read it. Callers that only pass through are left out.",
    )


def _path(report: RankReport) -> Section | None:
    path = report.critical_path
    if not path.total_ns:
        return None
    facts = [Fact("mostly", path.bound)]
    facts += [
        Fact(PATH_CLASSES.get(name, name), percent(value / path.total_ns), ns(value))
        for name, value in sorted(path.by_class.items(), key=lambda item: -item[1])
        if value
    ]
    facts += [Fact("note", note) for note in path.notes]
    body = [
        (
            short(op.name),
            PATH_CLASSES.get(op.class_name, op.class_name),
            ns(op.ns),
            percent(op.share),
            place(op.where),
        )
        for op in path.by_op[:MOST_LISTED]
    ]
    return Section(
        "path",
        "Critical path",
        facts,
        Table(("on the path", "class", "time", "share", "where"), body, frozenset({1, 4})),
        "Walked backwards from the end: at each moment, what had to finish for the rest to begin. Only what is on the path "
        "can make the run shorter.",
    )


def _kernels(report: RankReport) -> Section | None:
    if not report.top_kernels:
        return None
    found = report.kernels
    facts = [
        Fact("kernels", f"{found.calls:,}", f"{found.num_kernels:,} different"),
        Fact(
            "running",
            ns(report.kernel_busy_ns),
            f"{percent(report.kernel_busy_ns / max(report.span_ns, 1))} of the span",
        ),
        Fact("median", ns(found.median_ns)),
    ]
    if found.tensor_core_ns:
        facts.append(
            Fact("on tensor cores", percent(found.tensor_core_ns / max(found.total_ns, 1)), "of kernel time")
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
    columns = ("kernel", "category", "calls", "time", "share", "occupancy", "from")
    return Section("kernels", "Kernels", facts, Table(columns, body, frozenset({1, 6})))


def _launches(report: RankReport) -> Section | None:
    found, facts = report.launches, []
    if found.device is not None and found.device.num_work:
        on = found.device
        facts.append(
            Fact("launches per step", "–" if on.launches_per_step is None else f"{on.launches_per_step:,.4g}")
        )
        if on.after_call is not None:
            facts.append(
                Fact("launch to start", ns(on.after_call.median_ns), f"P95 {ns(on.after_call.p95_ns)}")
            )
        facts.append(Fact("kernels below 10 µs", f"{on.num_short:,}", f"{ns(on.short_ns)} in all"))
        facts.append(Fact("device waits for a launch", ns(on.waiting_ns)))
        sites = on.sites
    else:
        host = found.host
        facts.append(
            Fact("operators per step", "–" if host.ops_per_step is None else f"{host.ops_per_step:,.4g}")
        )
        if host.own is not None:
            facts.append(Fact("own time of an operator", ns(host.own.median_ns), "median"))
        if host.short_share is not None:
            facts.append(Fact("in operators below 10 µs", percent(host.short_share), "of operator time"))
        sites = host.sites
    body = [
        (place(site.where), site.name, f"{site.calls:,}", ns(site.total_ns), percent(site.share))
        for site in sites
    ]
    table = Table(("where", "most often", "calls", "time", "share"), body, frozenset({1})) if body else None
    return Section(
        "launches",
        "Launching" if report.num_kernels else "Dispatch",
        facts,
        table,
        "Short work costs about as much to issue as to run: these lines issue the most of it.",
    )


def _copies(report: RankReport) -> Section | None:
    body = [
        (
            f"{kind.kind} {kind.memory or ''}".strip(),
            f"{kind.num_copies:,}",
            format_bytes(kind.total_bytes),
            ns(kind.total_ns),
            "–" if kind.gb_per_s is None else f"{kind.gb_per_s:.3g} GB/s",
            ns(kind.exposed_ns),
            percent(kind.small_share),
        )
        for kind in report.copies.kinds
    ]
    columns = ("copies", "count", "bytes", "time", "rate", "not hidden", "below 64 KiB")
    return Section("copies", "Copies and fills", [], Table(columns, body)) if body else None


def _memory(report: RankReport) -> Section | None:
    found = report.memory
    if not found.devices:
        return None
    facts = []
    for device in found.devices:
        rise = "above the start of the trace" if device.is_relative else "allocated"
        facts.append(
            Fact(
                f"peak, {device.device}",
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
            "–" if site.turnover is None else f"{site.turnover:.3g}×",
        )
        for site in found.sites[:MOST_LISTED]
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


def _collectives(report: RankReport) -> Section | None:
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
    columns = ("collective", "calls", "bytes", "time", "not hidden", "bus", "from")
    return Section("collectives", "Collectives", [], Table(columns, body, frozenset({6}))) if body else None


def _roofline(report: RankReport) -> Section | None:
    body = [
        (
            short(point.op) or "–",
            short(point.shapes, 44),
            percent(point.share),
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
            "of the time",
        )
    ]
    if used.flop_per_s:
        facts.append(Fact("over the span", format_rate(used.flop_per_s, "FLOP/s"), f"{used.flop:,} FLOP"))
    if used.mfu is not None:
        facts.append(Fact("MFU", percent(used.mfu), used.peaks_source or ""))
    if used.bandwidth_utilisation is not None:
        facts.append(Fact("of the memory bandwidth", percent(used.bandwidth_utilisation)))
    columns = ("operator", "shapes", "time", "arithmetic", "traffic", "of the roof", "bound by")
    return Section(
        "roofline",
        "Against the hardware",
        facts,
        Table(columns, body, frozenset({1, 6})),
        "FLOP and bytes follow from shapes, by the formulas of each operator; traffic is the least that must move.",
        "Caches make real traffic smaller and re-reads make it larger than what a formula can know.",
    )


def _heaviest(totals: Sequence[T], report: RankReport) -> list[T]:
    """By device time where there is a device, else by host time."""
    by = "device_self_ns" if report.num_kernels else "host_self_ns"
    return sorted(totals, key=lambda one: getattr(one, by), reverse=True)


CHAPTERS: tuple[Callable[[RankReport], Section | None], ...] = (
    _where_to,
    _gains,
    _trust,
    _steps,
    _path,
    _tree,
    _phases,
    _lines,
    _modules,
    _ops,
    _idle,
    _gaps,
    _syncs,
    _launches,
    _kernels,
    _copies,
    _memory,
    _collectives,
    _roofline,
)
