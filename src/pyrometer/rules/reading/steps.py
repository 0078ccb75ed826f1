"""The fixed order in which an expert reads a profile, each question with the answer of this program.

Sound? → host or device? → one large operator or many small ones? → calls × cost → awkward shapes? → which line? What an
earlier step finds decides how far the later ones can be believed, and what they have to look for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from pyrometer.evidence.data_share import data_share
from pyrometer.quantity import counted, format_percent, format_seconds, significant
from pyrometer.rules.case import Case
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding
from pyrometer.rules.sequences import short_ns
from pyrometer.trace.naming.shapes import shape_words

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import OpTotal, RoofPoint

LARGE_SHARE = 0.3
"""Of the span, from which on one operator is worth looking at for itself."""

SMALL_SHARE = 0.2
"""Of the time in operators or kernels, in short ones, from which on there are too many small ones."""

FAR_BELOW_ROOF = 0.3
"""Of what the machine allows, below which a shape is called awkward."""

WORTH_TIME = 0.05
"""Of the time, below which an operator's shape does not matter."""

UNRECORDED = 0.1
"""Of the span, from which on it is said that nothing was recorded then."""

HEAVY_PROFILER = 1.5
"""Traced over untraced step, from which on times of small operators are mostly the profiler's."""

NO_LONGER = 1.03
"""Traced over untraced step, up to which the profiler's cost is lost in the noise."""

TOP = 3

CODES: dict[str, tuple[str, ...]] = {
    "sound": ("PYR0", "PYR7"),
    "host": ("PYR301", "PYR30", "PYR31", "PYR1", "PYR6"),
    "size": ("PYR109", "PYR110", "PYR111", "PYR502", "PYR516"),
    "calls": ("PYR401", "PYR402", "PYR213", "PYR215", "PYR511", "PYR512", "PYR515"),
    "shapes": ("PYR501", "PYR503", "PYR504", "PYR505", "PYR506", "PYR507", "PYR515"),
}
"""Starts of the codes of the rules that answer to each step."""


def read_profile(case: Case, findings: Iterable[Finding]) -> list[ReadingStep]:
    """Answer every question of the reading, in order, and name the findings that belong to each answer."""
    found = list(findings)
    return [_with_findings(ask(case), _belonging(key, found)) for key, ask in QUESTIONS]


def _with_findings(step: ReadingStep, findings: list[Finding]) -> ReadingStep:
    """A step with the findings that belong to it: where there are any, nothing is fine and nothing unseen."""
    codes = list(dict.fromkeys(finding.code for finding in findings))
    verdict = "look" if codes and step.verdict in {"fine", "unknown"} else step.verdict
    return msgspec.structs.replace(step, codes=codes, verdict=verdict)


def _belonging(key: str, findings: list[Finding]) -> list[Finding]:
    if key == "line":
        return [finding for finding in findings if finding.where.line is not None and finding.cost]
    about_us = key == "sound"
    return [
        finding
        for finding in findings
        if finding.code.startswith(CODES[key]) or (about_us and finding.scope == "measurement")
    ]


def sound(case: Case) -> ReadingStep:
    """Whether the figures can be believed: a steady state, few caveats, a profiler that did not distort."""
    question = "Is the measurement itself sound?"
    measured, capture, trace = case.measurement, case.capture, case.trace
    if measured is None and trace is None:
        return _unknown(question, "nothing was measured")
    said, bad, look = [], False, False
    if measured is not None:
        bad = not measured.steady or not measured.complete
        look = bool(measured.warnings)
        width = (measured.ci_high_s - measured.ci_low_s) / measured.median_s / 2 if measured.median_s else 0.0
        known = _known(width) if measured.num_samples > 1 else "a single sample has no spread"
        state = "steady" if measured.steady else "never steady"
        said.append(
            f"{state} after {counted(measured.warmup_steps, 'warm-up step')}, "
            f"{known}, {counted(len(measured.warnings), 'caveat')}"
        )
    ratio = capture.overhead_ratio if capture is not None else None
    if ratio is not None:
        look = look or ratio >= HEAVY_PROFILER
        heavy = "; small operators look larger than they are" if ratio >= HEAVY_PROFILER else ""
        text = f"the profiler made steps {significant(ratio)}× as long{heavy}"
        said.append(text if ratio > NO_LONGER else "the profiler cost nothing that could be told")
    if trace is not None and (trace.confidence != "high" or not said):
        look, bad = look or trace.confidence != "high", bad or trace.confidence == "low"
        said.append(f"confidence in the trace is {trace.confidence}")
    return ReadingStep(
        question=question,
        answer="; ".join(said),
        verdict="bad" if bad else "look" if look else "fine",
        evidence={
            "steady": measured.steady if measured is not None else None,
            "num_reservations": len(measured.warnings) if measured is not None else None,
            "profiler_overhead_ratio": ratio,
        },
    )


def host_or_device(case: Case) -> ReadingStep:
    """Which side the step waits for: devices, the host's operators, Python, or the data."""
    question = "Host or device?"
    trace = case.trace
    if trace is None or not trace.span_ns:
        return _unknown(question)
    known = data_share(case.measurement, case.loading)
    span, parts, device = trace.span_ns, trace.breakdown_ns, bool(trace.device_busy_ns)
    busy = trace.device_busy_ns / span
    # A share of data that is known without the profiler stands for the traced one: all else shares what is left.
    data = parts.data / span if known is None else known.share
    left = 1.0 if known is None or parts.data >= span else (1 - data) * span / (span - parts.data)
    operators, python = (left * ns / span for ns in (parts.host + parts.runtime + parts.sync, parts.other))
    shares: dict[str, float] = {"waiting for data": data, "Python": python}
    if device:
        shares |= {"the device": min(1.0, busy * left), "the host, the device idle": operators}
    else:
        shares["operators on the CPU"] = operators
    if parts.idle >= UNRECORDED * span:
        shares["nothing that was recorded"] = left * parts.idle / span
    most = max(shares, key=lambda name: shares[name])
    rest = ", ".join(f"{name} {format_percent(share)}" for name, share in shares.items() if name != most)
    whole = "the traced time" if known is None else "a step"
    return ReadingStep(
        question=question,
        answer=f"{most} {format_percent(shares[most])} of {whole} ({rest})",
        verdict="fine" if most in {"the device", "operators on the CPU"} else "look",
        evidence={
            "device_busy_share": busy,
            "operators_share": operators,
            "data_share": data,
            "python_share": python,
        },
    )


def one_or_many(case: Case) -> ReadingStep:
    """Whether one operator takes the time, or a crowd of small ones whose launching costs more than their work."""
    question = "One large operator or many small ones?"
    trace = case.trace
    top = _top_ops(trace)
    if trace is None or not top:
        return _unknown(question, _without_operators(trace))
    first, share = top[0]
    device, host = trace.launches.device, trace.launches.host
    small = device.short_ns / max(trace.kernel_sum_ns, 1) if device is not None else host.short_share or 0.0
    number = device.num_linked if device is not None else host.num_ops + host.num_nested
    per_step = device.launches_per_step if device is not None else host.ops_per_step
    what = "kernel launches" if device is not None else "operators"
    often = f"{number:,} {what}" if per_step is None else f"{per_step:,.0f} {what} per step"
    text = f"{first.name} takes {_of_time(share)}; {often}, "
    text += f"{format_percent(small, 2)} of their time in ones below {format_seconds(short_ns(trace) * 1e-9)}"
    return ReadingStep(
        question=question,
        answer=text,
        verdict="look" if share >= LARGE_SHARE or small >= SMALL_SHARE else "fine",
        evidence={"op": first.name, "op_share": share, "per_step": per_step, "short_share": small},
    )


def calls_times_cost(case: Case) -> ReadingStep:
    """The operators with the most time: how often they are called per step, and what one call costs."""
    question = "Calls × cost: what adds up?"
    top = _top_ops(case.trace)
    if case.trace is None or not top:
        return _unknown(question, _without_operators(case.trace))
    steps = case.num_traced_steps
    device = case.trace.num_kernels > 0
    said, rows = [], []
    for op, share in top:
        each = (op.device_self_ns if device else op.host_self_ns) / max(op.calls, 1) * 1e-9
        rows.append(
            f"{op.name} {significant(op.calls / steps)} × {format_seconds(each)} = {_of_time(share, '')}"
        )
        said.append(op.name)
    return ReadingStep(
        question=question, answer="; ".join(rows), verdict="fine", evidence={"ops": said, "num_steps": steps}
    )


def awkward_shapes(case: Case) -> ReadingStep:
    """Operators whose shapes the machine runs far below what it could."""
    question = "Awkward shapes?"
    trace = case.trace
    points = [
        point for point in (trace.roofline if trace is not None else []) if point.share_of_roof is not None
    ]
    if not points:
        return _unknown(question, _uncompared(trace))
    far = [
        point
        for point in points
        if point.share >= WORTH_TIME and (point.share_of_roof or 0.0) < FAR_BELOW_ROOF
    ]
    if not far:
        return ReadingStep(
            question=question,
            answer=f"none: every operator above {format_percent(WORTH_TIME, 1)} of the time in operators reaches "
            f"{format_percent(FAR_BELOW_ROOF, 2)} of what the machine allows",
            verdict="fine",
        )
    return ReadingStep(
        question=question,
        answer="; ".join(_shape(point, trace) for point in far[:TOP]),
        verdict="look",
        evidence={"num_shapes": len(far), "share": sum(point.share for point in far)},
    )


def user_line(case: Case) -> ReadingStep:
    """The functions of the user's own program that the time belongs to."""
    question = "Which line of the program?"
    trace = case.trace
    device = trace is not None and trace.num_kernels > 0
    lines = sorted(
        (line for line in (trace.top_lines if trace is not None else []) if line.file is not None),
        key=lambda line: line.device_share if device else line.host_share,
        reverse=True,
    )
    if not lines:
        return _unknown(question, "the trace holds no Python functions of the program")
    said = [
        f"{line.function} ({(line.file or '').rpartition('/')[2]}:{line.line}) "
        f"{_of_time(line.device_share if device else line.host_share, '')}"
        for line in lines[:TOP]
    ]
    first = lines[0]
    return ReadingStep(
        question=question,
        answer="; ".join(said),
        verdict="fine",
        evidence={"file": first.file, "line": first.line, "function": first.function},
    )


QUESTIONS: tuple[tuple[str, Callable[[Case], ReadingStep]], ...] = (
    ("sound", sound),
    ("host", host_or_device),
    ("size", one_or_many),
    ("calls", calls_times_cost),
    ("shapes", awkward_shapes),
    ("line", user_line),
)


def _known(width: float) -> str:
    """How well the median is known; above its own size a percentage says nothing."""
    return f"median known to ±{format_percent(width, 2)}" if width < 1 else "median hardly known"


def _unknown(question: str, why: str = "no step was traced") -> ReadingStep:
    return ReadingStep(question=question, answer=why, verdict="unknown")


def _without_operators(trace: RankReport | None) -> str:
    return "no step was traced" if trace is None else "the trace holds no operators"


def _top_ops(trace: RankReport | None) -> list[tuple[OpTotal, float]]:
    """The operators with the most time of their own, and its share of the span."""
    if trace is None:
        return []
    device = trace.num_kernels > 0
    shares = [(op, op.device_share if device else op.host_share) for op in trace.top_ops]
    return sorted(shares, key=lambda pair: pair[1], reverse=True)[:TOP]


def _uncompared(trace: RankReport | None) -> str:
    """Why no shape can be called awkward; the largest is named all the same."""
    why = "no operator could be compared with what this machine can do"
    largest = next((point for point in (trace.roofline if trace is not None else []) if point.shapes), None)
    if largest is None:
        return why
    return (
        f"{why}; most time goes to {largest.op} on {shape_words(largest.shapes)}: {_of_span(largest, trace)}"
    )


def _shape(point: RoofPoint, trace: RankReport | None) -> str:
    roof = format_percent(point.share_of_roof, 2)
    return f"{point.op} on {shape_words(point.shapes)} reaches {roof} of the roof in {_of_span(point, trace)}"


def _of_time(share: float, whole: str = " of the traced time") -> str:
    """A share of the traced time; threads that work at the same time may take more than all of it.

    >>> _of_time(0.5), _of_time(1.34)
    ('50.0 % of the traced time', '1.34× the traced time')
    """
    return f"{format_percent(share)}{whole}" if share <= 1 else f"{significant(share)}× the traced time"


def _of_span(point: RoofPoint, trace: RankReport | None) -> str:
    span = trace.span_ns if trace is not None else 0
    return _of_time(point.time_ns / max(span, 1))
