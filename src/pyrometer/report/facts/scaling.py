"""A training at many ranks, in words."""

from __future__ import annotations

from pyrometer.quantity import format_bytes, format_interval, format_rate, format_seconds, time_unit
from pyrometer.report.facts.layout import Fact, Table, percent
from pyrometer.report.target_documents import ScaleDocument
from pyrometer.scaling.record import Binding, ScaleCheck, ScalePrediction

BINDING: dict[Binding, str] = {
    "compute": "computing",
    "communication": "communication",
    "stragglers": "waiting for the slowest rank",
}


def headline(document: ScaleDocument) -> str:
    """The largest number of ranks, and what binds there."""
    last = document.predictions[-1]
    return f"{last.ranks:,} ranks: {percent(last.efficiency)} efficient, bound by {BINDING[last.binds]}"


def basis(document: ScaleDocument) -> str:
    """What is distributed, and how."""
    its = document.basis
    return f"{its.parallel.upper()} · {its.units_per_step:g} {its.unit} per rank and step"


def step(one: ScalePrediction) -> str:
    """A predicted step with its range."""
    unit = time_unit(one.step_s)[0]
    return f"{format_seconds(one.step_s)} ({format_interval(one.low_s, one.high_s, unit)})"


def prediction_table(document: ScaleDocument) -> Table:
    """A row for each number of ranks."""
    priced = any(one.cost_per_million is not None for one in document.predictions)
    columns = [
        "ranks",
        "step",
        "efficiency",
        document.basis.unit + " per s",
        "not hidden",
        "stragglers",
        "peak",
    ]
    columns += ["cost per million"] if priced else []
    return Table((*columns, "bound by"), [tuple(_row(one, priced)) for one in document.predictions])


def _row(one: ScalePrediction, priced: bool) -> list[str]:
    cells = [
        f"{one.ranks:,}",
        step(one),
        percent(one.efficiency),
        format_rate(one.units_per_s, ""),
        format_seconds(one.exposed_s),
        format_seconds(one.straggler_s),
        "–" if one.peak_bytes is None else format_bytes(one.peak_bytes),
    ]
    cells += [f"{one.cost_per_million:.3g}"] if priced and one.cost_per_million is not None else []
    return [*cells, BINDING[one.binds]]


def check_table(document: ScaleDocument) -> Table:
    """Predictions beside real runs."""
    rows = [
        (
            f"{one.ranks}",
            format_seconds(one.measured_s),
            format_seconds(one.predicted_s),
            f"{one.error:+.1%}".replace("%", " %"),
            held(one),
        )
        for one in document.checks
    ]
    return Table(("processes", "measured", "predicted", "error", "within its range"), rows)


def held(check: ScaleCheck) -> str:
    """Whether the real run lay in the predicted range."""
    return "yes" if check.low_s <= check.measured_s <= check.high_s else "no"


def communication(document: ScaleDocument) -> list[Fact]:
    """What a step sends."""
    first, last = document.basis.schedules[0], document.basis.schedules[-1]
    inside = document.basis.links.inside
    facts = [
        Fact("collectives per step", f"{len(last.calls):,}"),
        Fact("bytes per step", format_bytes(last.sent_bytes), "all messages together, each whole"),
        Fact(
            "link",
            format_rate(inside.bandwidth, "B/s"),
            f"{format_seconds(inside.alpha_s)} a hop, over {document.basis.links.backend}",
        ),
        Fact("error of the fit", percent(inside.error), "median over sizes from 1 KiB to 16 MiB"),
    ]
    if first.wrapping_ratio > 1.0:
        facts.append(
            Fact(
                "wrapping alone",
                f"{first.wrapping_ratio:.2f}×",
                "a step that copies into buffers and sends nothing, over a plain one",
            )
        )
    return facts
