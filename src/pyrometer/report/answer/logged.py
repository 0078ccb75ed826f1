"""Short answer of an analysis of logs."""

from __future__ import annotations

from pyrometer.monitor.logs.record import LogAnalysis
from pyrometer.quantity import counted
from pyrometer.report.answer.short import Fix, Part, ShortAnswer, Whole
from pyrometer.report.facts import logs as of_logs
from pyrometer.report.facts.layout import percent
from pyrometer.text import one_line


def of_document(document: LogAnalysis) -> ShortAnswer:
    """Latency, its largest change, what triggers compilations, errors, and what latency goes with."""
    fixes = [Fix(of_logs.trigger_sentence(one)) for one in document.triggers[:1]]
    fixes += [
        Fix(
            f"{counted(one.num_errors, 'error')}: {one_line(one.template, 50)}",
            sentence=", ".join(f"mostly with {shift.feature} {shift.value}" for shift in one.mostly[:1]),
        )
        for one in document.clusters[:2]
    ]
    parts = [
        Part(f"{one.feature}: slowest {one.values[0].value}", percent(one.explained), one.explained)
        for one in document.correlations[:5]
    ]
    return ShortAnswer(
        document.target,
        of_logs.headline(document),
        bound=of_logs.bound(document),
        alerts=document.notes,
        fixes=fixes,
        fixes_title="Look at",
        nothing="no errors, and nothing that triggers compilations",
        whole=Whole("What latency goes with", "of variance", parts) if parts else None,
        trust=f"{document.num_requests:,} requests with a latency; associations, no proof of a cause",
    )
