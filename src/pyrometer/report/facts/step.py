"""Where a step goes, on one clock: the median without the profiler where it was measured, else the median of the traced steps."""

from __future__ import annotations

from pyrometer.evidence.data_share import measured_share
from pyrometer.evidence.evidence import Evidence
from pyrometer.quantity import Seconds, counted, format_seconds
from pyrometer.report.charts.shares import Share
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts.layout import Fact
from pyrometer.report.facts.trace_words import PART_NAMES, PART_SLOTS, typical_ns


def step_s(evidence: Evidence) -> Seconds | None:
    """How long a step takes: as measured, else as traced; of a trace without steps all of it."""
    m, trace = evidence.measurement, evidence.trace
    if m is not None and m.median_s > 0:
        return m.median_s
    return None if trace is None or not trace.span_ns else 1e-9 * typical_ns(trace)


def is_by_phase(evidence: Evidence) -> bool:
    """Whether the phases that were timed without the profiler tell where a step goes: nothing was traced, or the profiler distorts it."""
    m, trace = evidence.measurement, evidence.trace
    if m is None or not m.phases:
        return False
    return trace is None or not trace.span_ns or of_loading.profiler_distorts(m, evidence.loading, trace)


def shares(evidence: Evidence) -> dict[str, float]:
    """What each part takes of a step: a phase, or a part of the traced time by its name in the record.

    Where the data was timed without the profiler, that is its share, and all else is divided as it was traced.
    """
    m, trace = evidence.measurement, evidence.trace
    if m is not None and is_by_phase(evidence):
        return {phase.name: phase.share for phase in m.phases}
    if trace is None or not trace.span_ns:
        return {}
    held = trace.breakdown_ns
    traced = {name: getattr(held, name) / held.total_ns for name in PART_SLOTS if getattr(held, name)}
    data = measured_share(m)
    rest = 1 - traced.get("data", 0.0)
    if data is None or data.share >= 1 or rest <= 0:
        return traced
    scale = (1 - data.share) / rest
    return {name: share * scale for name, share in traced.items()} | {"data": data.share}


def drawn(evidence: Evidence) -> list[Share]:
    """The parts as a page draws them, each with its time in one step."""
    whole_s, m = step_s(evidence) or 0.0, evidence.measurement
    found = shares(evidence)
    if m is not None and is_by_phase(evidence):
        slots = dict(zip(found, of_measurement.phase_slots(m.phases), strict=True))
        return [
            Share(name, share, format_seconds(share * whole_s), slots[name]) for name, share in found.items()
        ]
    return [
        Share(PART_NAMES[name], found[name], format_seconds(found[name] * whole_s), slot)
        for name, slot in PART_SLOTS.items()
        if name in found
    ]


def in_all(evidence: Evidence) -> Fact:
    """How much time the parts add up to."""
    m, trace = evidence.measurement, evidence.trace
    if m is not None and m.median_s > 0:
        return Fact("in all", format_seconds(m.median_s), "median of the measured steps")
    steps = len(trace.steps) if trace is not None else 0
    note = f"median of {counted(steps, 'traced step')}" if steps else ""
    return Fact("in all", format_seconds(step_s(evidence)), note)
