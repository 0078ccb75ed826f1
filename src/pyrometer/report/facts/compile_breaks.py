"""Graph breaks in words: where, why, how often, and what to write instead."""

from __future__ import annotations

from typing import NamedTuple

from pyrometer.advice import Advice
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import counted, format_ratio, significant
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.facts.trace_words import MOST_LISTED, short, short_path

EXACTNESS = {
    "exact": "",
    "tolerance": "results may differ by rounding",
    "semantic": "results may differ: read it before you take it over",
}
"""What a rewrite may change, where it may change something."""


class Card(NamedTuple):
    """One break: a title, where, the line itself, what it means, and rewrites."""

    title: str
    place: str
    remark: str
    source: str
    explanation: str
    stack: list[str]
    rewrites: list[Advice]


def cards(report: CompileReport) -> list[Card]:
    """Root causes first, as they are what to mend; breaks that only follow from them behind."""
    ordered = sorted(report.breaks, key=lambda graph_break: (graph_break.chained, -graph_break.count))
    return [_card(graph_break) for graph_break in ordered[:MOST_LISTED]]


def break_place(graph_break: Break) -> str:
    """Where a break is, as short as it may be.

    >>> break_place(Break(id=None, reason="", file="model.py", line=3, function="forward"))
    'model.py:3 forward'
    """
    return f"{short_path(graph_break.file)}:{graph_break.line} {graph_break.function}".rstrip()


def tried(report: CompileReport) -> Section | None:
    """The rewrites, carried out in memory."""
    trial = report.trial
    if trial is None:
        return None
    facts = [Fact("nothing to tell", trial.failure)] if trial.failure is not None else []
    if trial.breaks_after is not None:
        facts.append(Fact("breaks", f"{trial.breaks_before} → {trial.breaks_after}"))
    if trial.verdict is not None:
        facts.append(
            Fact("step", _against(trial.verdict), "rewritten and compiled, against compiled as written")
        )
    if trial.error is not None:
        fits = (
            "within tolerance"
            if trial.error.within_tolerance
            else "beyond the tolerance: do not take them over"
        )
        facts.append(Fact("outputs", f"relative error {trial.error.max_rel:.2g}", fits))
    facts += [Fact("left out", reason) for reason in trial.skipped]
    body = [
        (short_path(rewrite.where.text) if rewrite.where else "", rewrite.title) for rewrite in trial.rewrites
    ]
    table = Table(("rewritten", "as"), body, frozenset({1})) if body else None
    how = "Carried out in memory, all together; your files are as they were. What may change the meaning of the program is not tried."
    return Section("tried", "The rewrites, tried", facts, table, how)


def skipped(report: CompileReport) -> Section:
    """Frames that were given up."""
    body = [
        (
            f"{short_path(skip.file)}:{skip.line} {skip.function}".rstrip(),
            skip.compile_id,
            skip.kind.replace("_", " "),
            "it failed" if skip.raised else "it runs eagerly",
            short(skip.reason, 90),
        )
        for skip in report.skips
    ]
    how = (
        "The whole function runs eagerly, and so does all that it calls unless that is compiled by itself; where it failed, its "
        "caller got the exception."
    )
    columns = ("function", "compilation", "because of", "then", "reason")
    return Section(
        "skipped", "Functions that were given up", [], Table(columns, body, frozenset({2, 3, 4})), how
    )


def _against(verdict: Verdict) -> str:
    if verdict.ci_low is None or verdict.ci_high is None:
        return f"undecided: {significant(verdict.ratio)}×"
    ratio = format_ratio(verdict.ratio, verdict.ci_low, verdict.ci_high)
    return ratio if verdict.outcome in {"faster", "slower"} else f"{verdict.outcome}: {ratio}"


def _card(graph_break: Break) -> Card:
    remarks = [graph_break.id or "no id", f"met {counted(graph_break.count, 'time')}"]
    if graph_break.skips_frame:
        remarks.append("the whole function runs eagerly")
    if graph_break.chained:
        remarks.append(
            f"follows from {short_path(graph_break.chained_to)}"
            if graph_break.chained_to
            else "follows from another break"
        )
    if graph_break.lost_ops:
        remarks.append(f"{counted(graph_break.lost_ops, 'operation')} left out of any graph")
    return Card(
        title=short(graph_break.reason, 120),
        place=break_place(graph_break),
        remark=" · ".join(remarks),
        source=graph_break.source.strip(),
        explanation=short(graph_break.explanation.partition("\n\n")[0], 400),
        stack=[
            f"{short_path(place.text)} {place.function_name}".rstrip() for place in graph_break.user_stack
        ],
        rewrites=graph_break.advice,
    )
