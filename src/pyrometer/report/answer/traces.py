"""Short answers about traces: of one rank, of a job, and of two beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pyrometer.quantity import counted, format_interval, format_seconds, time_unit
from pyrometer.report.answer import fixes, step
from pyrometer.report.answer.lines import NAME_CELLS
from pyrometer.report.answer.short import Part, ShortAnswer, Whole
from pyrometer.report.documents import TraceDocument
from pyrometer.report.facts import step as of_step
from pyrometer.report.facts import trace_document
from pyrometer.report.facts.layout import percent
from pyrometer.report.facts.trace_diff import signed
from pyrometer.report.facts.trace_words import PART_NAMES, ns, short
from pyrometer.trace.difference.record import NodeChange, TraceDiff
from pyrometer.trace.records.rank import RankReport

MOST_CHANGES = 5
MOST_PLACES = 3
LEAST_CHANGE = 0.05
"""Of the largest change: what changed by less is not worth a line."""

ON_DEVICE = frozenset({"compute", "exposed_comm", "exposed_memcpy", "memset"})
"""Parts of a step whose changes are those of device work."""


def of_document(document: TraceDocument) -> ShortAnswer:
    """How long a traced step takes, what bounds it, and where it goes; of a job, on the rank that matters."""
    meant = fixes.of_findings(document.diagnosis.findings)
    if document.diff is not None:
        return _of_difference(document, document.diff)._replace(fixes=meant)
    ranks = trace_document.ordered_ranks(document)
    if not ranks:
        return ShortAnswer(_name(document), "nothing was recorded", fixes=meant)
    lead, several = _lead(document, ranks), len(ranks) > 1
    about = msgspec.structs.replace(document.evidence, trace=lead)
    whole = step.whole(about)
    if whole is not None:
        title = f"{whole.title}, rank {lead.rank}" if several else whole.title
        whole = whole._replace(title=title)
    return ShortAnswer(
        _name(document),
        _figure(lead, of_step.step_s(about)),
        bound=step.bound(about),
        alerts=document.evidence.job.warnings if document.evidence.job is not None else (),
        fixes=meant,
        nothing=fixes.nothing(document.diagnosis),
        remarks=fixes.remarks(document.diagnosis),
        whole=whole,
        trust=_trust(document, lead),
        improve=_improve(document),
    )


def _lead(document: TraceDocument, ranks: Sequence[RankReport]) -> RankReport:
    """The rank for which the others wait; else the one that the verdict is about."""
    job = document.evidence.job
    late = job.slowest if job is not None else None
    return next((report for report in ranks if late is not None and report.rank == late.rank), ranks[0])


def _name(document: TraceDocument) -> str:
    if len(document.reports) > 1 and document.diff is None:
        return trace_document.number_of_ranks(document)
    return " against ".join(name.rpartition("/")[2] for name in document.target.split(" against "))


def _figure(report: RankReport, step_s: float | None) -> str:
    """The median step with the shortest and longest, or what was traced where no steps are marked."""
    if step_s is None:
        return "nothing to time was recorded"
    if not report.steps:
        return f"{ns(report.span_ns)} traced, no step marked"
    lengths = [1e-9 * (one.end_ns - one.start_ns) for one in report.steps]
    if max(lengths) * 1e9 > report.span_ns:
        return f"{ns(report.span_ns)} traced, {counted(len(lengths), 'step')}"
    spread = format_interval(min(lengths), max(lengths), time_unit(step_s)[0])
    return f"{format_seconds(step_s)}/step under the profiler ({counted(len(lengths), 'step')}, {spread})"


def _trust(document: TraceDocument, report: RankReport) -> str:
    said = [f"repaired: {repair.message}" for repair in report.repaired[:1]]
    said.append(f"confidence {trace_document.confidence(document, report)}")
    capture = document.evidence.capture
    if capture is not None and capture.overhead_ratio is not None:
        said.append(f"the profiler made steps {capture.overhead_ratio:.3g}× as long")
    grave = [issue.message for issue in report.health if issue.severity != "info" or issue.code == "one_rank"]
    return " · ".join([*said, *grave[:1]])


def _improve(document: TraceDocument) -> str:
    """A measurement without the profiler; of files there is no program to measure."""
    if document.evidence.capture is None:
        return ""
    return f"pyrometer check {document.target}"


def _of_difference(document: TraceDocument, diff: TraceDiff) -> ShortAnswer:
    rows = sorted(diff.parts, key=lambda part: -abs(part.b_ns - part.a_ns))
    least = LEAST_CHANGE * abs(rows[0].b_ns - rows[0].a_ns) if rows else 0.0
    changed: list[Part] = [
        Part(
            PART_NAMES.get(part.name, part.name),
            signed(part.b_ns - part.a_ns),
            note=f"{ns(part.a_ns)} → {ns(part.b_ns)}",
        )
        for part in rows[:MOST_CHANGES]
        if (part.a_ns or part.b_ns) and abs(part.b_ns - part.a_ns) >= least
    ]
    changed += _changed_work(diff, least, on_device=bool(rows) and rows[0].name in ON_DEVICE)
    apart = [f"{one.field}: {one.a} → {one.b}" for one in diff.differences]
    return ShortAnswer(
        _name(document),
        diff.sentence,
        bound=f"a step took {ns(diff.step.a_ns)}, then {ns(diff.step.b_ns)}",
        whole=Whole("What changed per step", "", changed) if changed else None,
        trust=" · ".join(
            [f"{diff.num_steps_a} and {counted(diff.num_steps_b, 'step')}", percent(diff.confidence), *apart]
        ),
        tone=diff.outcome,
    )


def _place(node: NodeChange) -> str:
    """The innermost operator; of what lies in no event of both sides, what only one of them has."""
    operator = next((name for name in reversed(node.path) if name.startswith("aten::")), "")
    if operator or node.path:
        return short(operator or node.path[-1], NAME_CELLS)
    for what, names in (("new", node.added), ("gone", node.removed)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            return f"{what}: {short(names[0], NAME_CELLS)}{more}"
    return "the rest of the step"


def _changed_work(diff: TraceDiff, least_ns: float, *, on_device: bool) -> list[Part]:
    """The operators and kernels that changed most, where the part of the step that changed most is spent."""
    told = []
    for node in diff.nodes:
        time = node.device if on_device else node.host
        if abs(time.delta_ns) >= least_ns and (time.a_ns or time.b_ns):
            now = f", now {short(node.replaced_by, NAME_CELLS)}" if node.replaced_by else ""
            note = f"{ns(time.a_ns)} → {ns(time.b_ns)}{now}"
            told.append((abs(time.delta_ns), Part(_place(node), signed(time.delta_ns), note=note)))
    return [part for _, part in sorted(told, key=lambda one: -one[0])[:MOST_PLACES]]
