"""A trace in words: where the time goes, what bounds it, what could be won back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyrometer.quantity import counted, format_bytes, format_ratio, format_seconds
from pyrometer.report.facts import trace_device
from pyrometer.report.facts.layout import Fact, Section, Table, percent, told
from pyrometer.report.facts.trace_words import (
    MOST_LISTED,
    OF_SPAN,
    PART_NAMES,
    PART_SLOTS,
    PATH_CLASSES,
    PHASE_SOURCES,
    SHARES_OVERLAP,
    ns,
    of_span,
    place,
    short,
    short_path,
    typical_ns,
    widest_parts,
)
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.records.gains import Recoverable
from pyrometer.trace.records.rank import RankReport

T = TypeVar("T")

WORTH_LISTING = 0.99
"""A change that would leave more of the time than this is not worth a row."""

DRAWN = frozenset({"tree"})
"""Chapters that are a drawing, and so have their place only on a page."""


def sections(report: RankReport, capture: Capture | None = None) -> list[Section]:
    """The chapters of one rank's trace, in the order in which an expert reads a profile; empty ones are left out."""
    chapters = [chapter(report) for chapter in CHAPTERS]
    if capture is not None:
        chapters.append(_capture(capture))
    return told(chapters)


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


def _gains(report: RankReport) -> Section:
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
    columns = ("if this were better", "gain", "of the trace", "which means", "where")
    return Section(
        "gains",
        "What could be won back",
        [],
        Table(columns, body, frozenset({3, 4})),
        "Predicted by replaying the trace with that part shortened and everything else as it depends on it: work that is "
        "hidden behind other work wins nothing. An operator's or a line's own part is what runs directly within it, with its device "
        "work. Gains are of profiled time: without the profiler they may be smaller. An interval is what delays without a recorded "
        "cause leave open.",
        "A prediction is a hypothesis: make the change, and measure it with pyrometer bench --vs.",
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


def in_all(report: RankReport) -> Fact:
    """How much time the parts of the bar add up to."""
    num_steps = len(report.steps)
    whole = f"median of {counted(num_steps, 'traced step')}" if num_steps else ""
    return Fact("in all", ns(typical_ns(report)), whole)


def _where_to(report: RankReport) -> Section:
    return Section(
        "breakdown",
        "Where the time goes",
        [in_all(report)],
        None,
        "Every moment of the span counts once: first what a device does, then, while all devices are idle, what the "
        "host does. The shares are of the whole span; times are those of one step.",
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
    facts = [
        Fact("steps together", ns(sum(step.end_ns - step.start_ns for step in report.steps))),
        Fact("traced span", ns(report.span_ns)),
    ]
    how = (
        "The parts of a step add up to its length; the smallest have no column. The span begins with the first work that was "
        "recorded and ends with the last, inside of a step or outside; shares of other chapters are of the span."
    )
    return Section("steps", "Steps", facts, Table(columns, body), how)


def _ops(report: RankReport) -> Section:
    body = [
        (
            op.name,
            f"{op.calls:,}",
            ns(op.host_self_ns),
            of_span(op.host_share),
            *((ns(op.device_self_ns), of_span(op.device_share)) if report.num_kernels else ()),
        )
        for op in _heaviest(report.top_ops, report)[:MOST_LISTED]
    ]
    columns = ("operator", "calls", "host", OF_SPAN, *(("device", OF_SPAN) if report.num_kernels else ()))
    return Section(
        "operators",
        "Operators",
        [],
        Table(columns, body),
        f"Times are the operator's own: nested operators have rows of their own. {SHARES_OVERLAP}",
    )


def _lines(report: RankReport) -> Section:
    by = "device_ns" if report.num_kernels else "self_ns"
    ordered = sorted(report.top_lines, key=lambda line: getattr(line, by), reverse=True)
    body = [
        (
            f"{short_path(line.file or '')}:{line.line} {line.function or ''}".rstrip(),
            ns(line.self_ns),
            of_span(line.host_share),
            *((ns(line.device_ns), of_span(line.device_share)) if report.num_kernels else ()),
            f"{line.num_ops:,}",
            ", ".join(op.name for op in line.top_ops[:2]),
        )
        for line in ordered[:MOST_LISTED]
    ]
    columns = (
        "function",
        "host",
        OF_SPAN,
        *(("device", OF_SPAN) if report.num_kernels else ()),
        "operators",
        "mostly",
    )
    return Section(
        "lines",
        "Functions of the program",
        [],
        Table(columns, body, frozenset({len(columns) - 1})),
        "Time belongs to the innermost function of your own code around it, backward operators to the function that ran "
        f"them forward. The line is the one at which the function begins. {SHARES_OVERLAP}",
    )


def _modules(report: RankReport) -> Section:
    by = "device_self_ns" if report.num_kernels else "host_self_ns"
    ordered = sorted(report.top_modules, key=lambda module: getattr(module, by), reverse=True)
    body = [
        (
            module.module or "",
            f"{module.calls:,}",
            ns(module.host_self_ns),
            ns(module.forward_ns),
            ns(module.backward_ns),
            of_span(module.host_share),
            *((ns(module.device_total_ns), of_span(module.device_share)) if report.num_kernels else ()),
        )
        for module in ordered[:MOST_LISTED]
    ]
    columns = (
        "module",
        "calls",
        "own",
        "forward",
        "backward",
        OF_SPAN,
        *(("device", OF_SPAN) if report.num_kernels else ()),
    )
    how = (
        "Own leaves submodules out; the other times hold them, so that their shares must not be added up. Backward operators "
        "count for the module that ran forward. Shares are of the traced span."
    )
    return Section("modules", "Modules", [], Table(columns, body), how)


def _serving(report: RankReport) -> Section:
    body = [
        (
            group.kind,
            f"{group.num_steps:,}",
            f"{group.requests:,}",
            f"{group.tokens:,}" if group.tokens else "–",
            ns(group.step.median_ns if group.step else 0),
            "–" if group.tokens_per_s is None else f"{group.tokens_per_s:,.0f}",
            ns(group.device_ns),
        )
        for group in report.serving
    ]
    columns = ("step", "steps", "requests", "new tokens", "median", "tokens/s", "device")
    how = (
        "Steps are those that the engine marks, and what they served is as it says: new tokens of a prefill are of prompts, of "
        "a decode generated. Device is the work that the steps launched; tokens per second are over the time within them."
    )
    return Section("serving", "Serving", [], Table(columns, body), how)


def _phases(report: RankReport) -> Section:
    body = [
        (
            phase.name,
            ns(phase.host_share * report.span_ns),  # what lies before the span is in no other chapter
            of_span(phase.host_share),
            *((ns(phase.device_ns),) if report.num_kernels else ()),
            PHASE_SOURCES[phase.source],
        )
        for phase in report.phases.phases
    ]
    columns = ("phase", "host", OF_SPAN, *(("device",) if report.num_kernels else ()), "told by")
    how = f"Host is the time within the span in which any thread was in the phase. {SHARES_OVERLAP}"
    words = frozenset({len(columns) - 1})
    return Section("phases", "Phases", [], Table(columns, body, words), how)


def _tree(report: RankReport) -> Section | None:
    if not report.call_tree:
        return None
    weighed = "of device work, launched below it" if report.device_busy_ns else "of host time"
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
    facts = [Fact("mostly", path.mostly)]
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
        "can make the run shorter. Shares are of the path, which is as long as the run. Unrecorded host time counts here "
        "even while a device works; in the bar, nothing recorded is time in which no device does.",
    )


def _heaviest(totals: Sequence[T], report: RankReport) -> list[T]:
    """By device time where there is a device, else by host time."""
    by = "device_self_ns" if report.num_kernels else "host_self_ns"
    return sorted(totals, key=lambda total: getattr(total, by), reverse=True)


CHAPTERS: tuple[Callable[[RankReport], Section | None], ...] = (
    _where_to,
    _gains,
    _trust,
    _steps,
    _serving,
    _path,
    _tree,
    _phases,
    _lines,
    _modules,
    _ops,
    *trace_device.CHAPTERS,
)
