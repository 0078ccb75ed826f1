"""The short answer of a guard: whether the head is worse, which gates say so, and why."""

from __future__ import annotations

from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.report.answer.short import Part, ShortAnswer, Whole
from pyrometer.report.facts import guard as facts

MOST_CAUSES = 4


def of_document(report: GuardReport) -> ShortAnswer:
    """What is worse, better or undecided, with its change, and what explains it."""
    gates = facts.in_order(facts.worth_telling(report))
    causes = list(dict.fromkeys(facts.cause_text(cause) for gate in gates for cause in gate.why))
    alerts = facts.missed_lines(report) + list(report.notes) + causes[:MOST_CAUSES]
    alerts += [f"{len(causes) - MOST_CAUSES} more causes in --full"] if len(causes) > MOST_CAUSES else []
    return ShortAnswer(
        report.target,
        facts.headline(report),
        bound=facts.subtitle(report),
        alerts=alerts,
        whole=Whole("Gates", "", [_part(gate) for gate in gates]) if gates else None,
        trust=facts.self_line(report.self_check),
        tone="slower" if any(gate.outcome == "regressed" for gate in gates) else "",
    )


def _part(gate: Gate) -> Part:
    figures = f"{facts.figure(gate, gate.base)} → {facts.figure(gate, gate.head)}"
    note = (
        f"{facts.change(gate)} · limit {facts.limit(gate)}"
        if gate.ratio is not None
        else f"limit {facts.limit(gate)}"
    )
    name = f"{gate.benchmark.rpartition('::')[2]} {gate.metric}"
    return Part(name, facts.WORDS[gate.outcome], note=f"{figures} · {note}")
