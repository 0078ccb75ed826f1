"""Items about measuring discipline."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import PROFILERS, TIMERS, needs_words
from pyrometer.rules.audit.item import Failure, Item
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value

WIDEST = 0.05
"""Half the width of the median's interval over the median, up to which a figure is worth quoting."""


def _steady(case: Case) -> dict[str, Value] | None:
    measured = case.measurement
    if measured is None or not measured.steady:
        return None
    return {"steady_after_steps": measured.warmup_steps, "samples": measured.num_samples}


def _width(case: Case) -> float | None:
    measured = case.measurement
    if measured is None or not measured.median_s or measured.ci_high_s <= measured.ci_low_s:
        return None  # so few samples bound nothing
    return (measured.ci_high_s - measured.ci_low_s) / measured.median_s / 2


def _narrow(case: Case) -> dict[str, Value] | None:
    width = _width(case)
    return {"half_width": width} if width is not None else None


def _wide(case: Case) -> Failure | None:
    width = _width(case)
    if width is None or width <= WIDEST:
        return None
    return Failure(
        reason=f"the median is known to ±{width:.1%} only",
        evidence={"half_width": width},
        advice="measure longer with --budget, on a quieter machine",
    )


def _source(case: Case) -> dict[str, Value] | None:
    return {"files_read": len(case.modules)} if case.modules else None


MEASURING = (
    Item(
        code="A601",
        title="A steady state is reached, and warm-up kept apart",
        rules=("PYR010",),
        proof=_steady,
        needed="a measurement",
    ),
    Item(
        code="A602",
        title="The interval of the median is narrow",
        fault=_wide,
        proof=_narrow,
        needed="a measurement",
    ),
    Item(
        code="A603",
        title="The program's own timings wait for the device, leave out warm-up, and are repeated",
        rules=("PYR001", "PYR002", "PYR003", "PYR012"),
        proof=_source,
        applies=needs_words(TIMERS, "the program takes no times"),
        needed="the program's source",
    ),
    Item(
        code="A604",
        title="The profiler has a schedule, and is off while times are taken",
        rules=("PYR004", "PYR005", "PYR009"),
        proof=_source,
        applies=needs_words(PROFILERS, "the program runs no profiler"),
        needed="the program's source",
    ),
)
