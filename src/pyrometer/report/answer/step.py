"""Where a step goes, on the clock of the measurement: the median without the profiler, where it was measured."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.evidence.evidence import Evidence
from pyrometer.place import file_name
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.report.answer import parts
from pyrometer.report.answer.short import Part, Whole
from pyrometer.report.charts.shares import Share
from pyrometer.report.facts import step as of_step
from pyrometer.report.facts import trace_job
from pyrometer.report.facts.layout import percent
from pyrometer.report.facts.trace_words import PART_NAMES
from pyrometer.trace.records.gains import Bound
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.totals import OpTotal

MOST_OPERATORS = 3
"""Operators that have a row of their own."""

SPLIT_FROM = 0.05
"""Share of a step from which on an operator has one."""

OTHERS = "other operators"
OTHER_LINES = "other lines"

FEWEST_SAMPLES = 30
"""Of the host, by which a step is divided: below, a line's share would be known to a fifth at best."""

ELSEWHERE = 0.1
"""Of a step, by which operators' own time may be longer than the part in which one runs: above, some run at the same time, and have
no share."""

TITLE = "Where the time goes"

BOUND_WORDS: dict[Bound, str] = {
    "compute": "Compute-bound",
    "communication": "Communication-bound",
    "copies": "Copy-bound",
    "synchronisation": "Synchronisation-bound",
    "data": "Data-bound",
    "host": "Host-bound",
    "operators": "CPU-bound",
    "python": "Python-bound",
    "unrecorded": "Mostly unrecorded",
    "balanced": "Balanced",
}
"""What bounds a program, in the field's words."""

NAMES = {**PART_NAMES, "host": "operators", "data": "data", "sync": "waiting for the device"}
"""Parts of a step, in a word or two."""


def whole(evidence: Evidence) -> Whole | None:
    """The step and its parts: operators apart, where one runs at a time; lines, where nothing else divides it."""
    coarse = _coarse(evidence)
    if coarse is None:
        return None
    if len(coarse.parts) == 1 and evidence.trace is None:
        return _lines(evidence) or coarse
    room = parts.MOST - len(coarse.parts)
    rows = [row for part in coarse.parts for row in (_operators(evidence.trace, part, room) or [part])]
    return coarse._replace(
        parts=sorted(rows, key=lambda row: (row.name.startswith("other"), -(row.share or 0.0)))
    )


def _lines(evidence: Evidence) -> Whole | None:
    """The step and the lines in which the host was seen."""
    host, length = evidence.host, of_step.step_s(evidence)
    if host is None or length is None or host.samples < FEWEST_SAMPLES:
        return None
    shares = [
        (f"{file_name(line.where.file)}:{line.where.line}", host.share(line.own_s))
        for line in host.lines[: parts.MOST - 1]
        if line.where.file is not None
    ]
    return parts.of_time(
        [*shares, (OTHER_LINES, max(0.0, 1 - sum(share for _, share in shares)))], length, TITLE
    )


def _coarse(evidence: Evidence) -> Whole | None:
    """The step and its parts, with operators as one."""
    length = of_step.step_s(evidence)
    if length is None:
        return None
    found = of_step.shares(evidence)
    return parts.of_time([(NAMES.get(name, name), share) for name, share in found.items()], length, TITLE)


def _operators(trace: RankReport | None, whole: Part, room: int) -> list[Part]:
    """The largest operators and all others, which add up to the part that is operators; nothing where several run at once."""
    if trace is None or whole.name != NAMES["host"] or whole.share is None or room < 1:
        return []
    named = _largest(trace, room)
    figures = parts.rounded([share for _, share in named], whole.figure)
    rows = [
        Part(name, figure, share * whole.share) for (name, share), figure in zip(named, figures, strict=True)
    ]
    return [row for row in rows if float(row.figure)]


def _largest(trace: RankReport, room: int) -> list[tuple[str, float]]:
    """The largest operators of a program without a device and all others, as shares of the part that is operators."""
    traced = trace.breakdown_ns.host / max(trace.breakdown_ns.total_ns, 1)
    own = sum(op.host_self_ns for op in trace.top_ops) / max(trace.breakdown_ns.total_ns, 1)
    if trace.num_kernels or not own or not traced or own > traced + ELSEWHERE:
        return []
    scale = min(1.0, traced / own) / traced  # some run while data is loaded, and count as that
    largest = sorted(trace.top_ops, key=lambda op: -op.host_self_ns)[: min(room, MOST_OPERATORS)]
    named = [(operator_name(op), op.host_share * scale) for op in largest if op.host_share >= SPLIT_FROM]
    return [*named, (OTHERS, max(0.0, 1 - sum(share for _, share in named)))] if named else []


def drawn(evidence: Evidence) -> list[Share]:
    """The parts of a step as a page draws them, operators of a program without a device apart."""
    shares, trace, length_s = of_step.drawn(evidence), evidence.trace, of_step.step_s(evidence)
    return shares if trace is None or length_s is None else apart(trace, shares, length_s)


def apart(trace: RankReport, shares: Sequence[Share], length_s: Seconds) -> list[Share]:
    """The same with operators apart, in shades of their colour."""
    divided: list[Share] = []
    for part in shares:
        named = _largest(trace, MOST_OPERATORS) if part.name == PART_NAMES["host"] else []
        divided += [
            Share(name, share * part.share, format_seconds(share * part.share * length_s), part.slot, shade)
            for shade, (name, share) in enumerate(named)
            if share > 0
        ] or [part]
    return divided


def verdict(evidence: Evidence) -> str:
    """What bounds the program, and the part that takes most of a step, in one short sentence."""
    whole, found = _coarse(evidence), evidence.trace_verdict
    if whole is None or found is None:
        return ""
    largest = max(whole.parts, key=lambda part: part.share or 0.0)
    said = f"{BOUND_WORDS[found.bound]}: {{}} {percent(largest.share or 0.0)} of each step"
    takes = "take" if largest.name.endswith("s") else "takes"
    if largest.name == PART_NAMES["idle"]:
        return said.format("nothing was recorded for")
    return said.format(f"{largest.name} {takes}")


def operator_name(op: OpTotal) -> str:
    """An operator's name without what every name has.

    >>> from pyrometer.trace.reporting.totals import OpTotal
    >>> zero = dict.fromkeys(("calls", "host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns", "num_kernels"), 0)
    >>> operator_name(OpTotal(name="aten::mm", **zero, host_share=0.0, device_share=0.0))
    'mm'
    """
    return op.name.removeprefix("autograd::engine::evaluate_function: ").rpartition("::")[2]


def bound(evidence: Evidence) -> str:
    """What bounds the program, and its largest parts, in the unit of a step."""
    divided, verdict = _coarse(evidence), evidence.trace_verdict
    if divided is None:
        return ""
    first, *rest = divided.parts
    said = [f"{first.name} {first.figure} {divided.unit}", *(f"{part.name} {part.figure}" for part in rest)]
    figures = " · ".join(said)
    bounded = figures if verdict is None else f"{BOUND_WORDS[verdict.bound]}: {figures}"
    return " · ".join(filter(None, [trace_job.late(evidence.job), bounded]))
