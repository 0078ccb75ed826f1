"""Short answer about a training on many ranks."""

from __future__ import annotations

from pyrometer.quantity import format_seconds
from pyrometer.report.answer.measured import named
from pyrometer.report.answer.short import Part, ShortAnswer, Whole
from pyrometer.report.facts import scaling as of_scaling
from pyrometer.report.facts.layout import percent
from pyrometer.report.target_documents import ScaleDocument


def of_document(document: ScaleDocument) -> ShortAnswer:
    """Efficiency by number of ranks, what binds, and how predictions held here."""
    parts = [
        Part(
            f"{one.ranks:,} ranks",
            format_seconds(one.step_s),
            one.efficiency,
            note=of_scaling.BINDING[one.binds],
        )
        for one in document.predictions
    ]
    checked = [
        f"{one.ranks} processes here: {format_seconds(one.measured_s)}, predicted {format_seconds(one.predicted_s)}"
        for one in document.checks
    ]
    return ShortAnswer(
        named(document.target),
        of_scaling.headline(document),
        bound=of_scaling.basis(document),
        whole=Whole("Efficiency, and the step", "", parts),
        trust="; ".join(checked)
        or f"not checked by a run; the fit of the links is off by {percent(document.basis.links.inside.error)}",
        full="--full prints assumptions, communication and checks",
    )
