"""Two stored runs beside each other, in words and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import counted, format_bytes, format_percent, format_rate, format_seconds, significant
from pyrometer.report.facts.findings import place_text
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.facts.run_lines import commit, taken
from pyrometer.report.facts.trace_words import PART_NAMES
from pyrometer.rules.finding import Finding
from pyrometer.store.changes import Amount, RunChanges
from pyrometer.store.comparison import Comparison
from pyrometer.workload.naming import told_apart

SAME = 0.005
"""Relative difference below which two figures are told as equal."""

SIDES = ("A (before)", "B (after)")
"""What the columns of both sides are called."""


class Figure(NamedTuple):
    """What is told of each side."""

    name: str
    said: Callable[[Measurement], str]
    value: Callable[[Measurement], float | None] | None = None  # by which the two differ


MEDIAN = Figure("median step", lambda m: format_seconds(m.median_s), lambda m: m.median_s)
PEAK = Figure("peak memory", lambda m: format_bytes(m.peak_bytes), lambda m: m.peak_bytes)
FIGURES = (
    MEDIAN,
    Figure("its interval", lambda m: f"{format_seconds(m.ci_low_s)}–{format_seconds(m.ci_high_s)}"),
    Figure("P95", lambda m: format_seconds(m.p95_s), lambda m: m.p95_s),
    Figure("P99", lambda m: format_seconds(m.p99_s), lambda m: m.p99_s),
    Figure("first call", lambda m: format_seconds(m.first_call_s), lambda m: m.first_call_s),
    Figure("throughput", lambda m: format_rate(m.throughput, f"{m.unit}/s"), lambda m: m.throughput),
    PEAK,
    Figure("samples", lambda m: f"{m.num_samples:,}"),
)
"""All that is told of each side."""


PHASES_HOW = "Means over the steps whose phases were timed; each phase counts while the step waits for it."


def headline(comparison: Comparison) -> str:
    """Which of the two was faster, without a verdict; where their steps need not do the same work, what each takes."""
    if comparison.a.run.id == comparison.b.run.id:
        return "the same run on both sides: there is nothing to compare"
    ratio = comparison.ratio_of_medians
    a, b = (side.measurement for side in (comparison.a, comparison.b))
    if ratio is None:
        apart = "two targets" if comparison.a.run.target != comparison.b.run.target else "not the same step"
        return f"{apart}: A takes {format_seconds(a.median_s)}, B takes {format_seconds(b.median_s)} per step"
    if abs(ratio - 1) < SAME:
        return "both took the same time"
    if max(a.ci_low_s, b.ci_low_s) <= min(a.ci_high_s, b.ci_high_s):
        return "no clear difference: the intervals of both medians overlap"
    text = f"{significant(ratio)}× slower" if ratio > 1 else f"{significant(1 / ratio)}× faster"
    return f"B was {text} than A, not yet proven"


def cautions(comparison: Comparison) -> list[str]:
    """What limits the trust in either side, a sentence each; the first reason stands for the others."""
    told = []
    if comparison.a.run.number > comparison.b.run.number:
        told.append("A was taken after B: pass the older run first to see what changed since.")
    for name, m in (("A", comparison.a.measurement), ("B", comparison.b.measurement)):
        reasons = [m.failure] if m.failure else [caveat.message for caveat in m.warnings]
        if reasons:
            more = f", and {counted(len(reasons) - 1, 'more reason')}" if reasons[1:] else ""
            told.append(f"The measurement of {name} is not sound: {reasons[0]}{more}.")
    return told


def top_figures(comparison: Comparison) -> list[Fact]:
    """The change in a few figures; times only where both do the same work in a step."""
    changes, facts = comparison.changes, []
    a, b = (side.measurement for side in (comparison.a, comparison.b))
    if comparison.ratio_of_medians is not None:
        facts += [
            Fact(figure.name.capitalize(), f"{figure.said(a)} → {figure.said(b)}", _difference(figure, a, b))
            for figure in (MEDIAN, PEAK)
        ]
    if changes.findings_gone or changes.findings_new or changes.num_findings_kept:
        came = f"{len(changes.findings_gone)} gone, {len(changes.findings_new)} new"
        facts.append(Fact("Findings", came, f"{changes.num_findings_kept} on both sides"))
    facts += [
        Fact(amount.name.capitalize(), f"{amount.a:.0f} → {amount.b:.0f}", "")
        for amount in changes.compiled
        if amount.a != amount.b
    ]
    return facts


def target(comparison: Comparison) -> str:
    """What is compared with what: one target at two moments, or two targets."""
    a, b = comparison.a.run.target, comparison.b.run.target
    return a if a == b else f"{a} against {b}"


def side_names(comparison: Comparison) -> tuple[str, str]:
    """Both sides by what differs between them: target, commit, moment, or else the run."""
    a, b = comparison.a.run, comparison.b.run
    if a.target != b.target:
        return told_apart(a.target, b.target)
    for told in (commit, taken):
        if told(a) and told(b) and told(a) != told(b):
            return told(a), told(b)
    return a.id, b.id


def side_table(comparison: Comparison) -> Table:
    """Where the two runs come from."""
    a, b = comparison.a, comparison.b
    rows = [
        ("run", a.run.id, b.run.id),
        ("target", a.run.target, b.run.target),
        ("taken", taken(a.run), taken(b.run)),
        ("commit", commit(a.run) or "–", commit(b.run) or "–"),
        ("variant", a.measurement.config, b.measurement.config),
    ]
    always = ("run", "taken", "commit")
    return Table(("", *SIDES), [row for row in rows if row[0] in always or row[1] != row[2]])


def provenance_facts(comparison: Comparison) -> list[Fact]:
    """What was compared; the environment beside it is that of B."""
    runs = f"{comparison.a.run.id} and {comparison.b.run.id}"
    text = "of B; what differed for A is listed" if comparison.changes.settings else "the same for both"
    return [Fact("target", target(comparison)), Fact("runs", runs), Fact("environment", text)]


def figure_table(comparison: Comparison) -> Table:
    """Their figures; by how much they differ is told where both do the same work in a step."""
    a, b = (side.measurement for side in (comparison.a, comparison.b))
    rows = [(figure.name, figure.said(a), figure.said(b), _difference(figure, a, b)) for figure in FIGURES]
    table = Table(("", *SIDES, "change"), rows)
    return table if comparison.ratio_of_medians is not None else _without_changes(table)


def _difference(figure: Figure, a: Measurement, b: Measurement) -> str:
    if figure.value is None:
        return ""
    before, after = figure.value(a), figure.value(b)
    if before is None or after is None:
        return "–"
    return change(Amount(name="", a=before, b=after))


def sections(comparison: Comparison) -> list[Section]:
    """What changed, part by part; empty parts are left out, and ratios where the two need not do the same work."""
    changes = comparison.changes
    made = [
        _findings(changes),
        _amounts(
            "phases", "Phases, mean per step", changes.phases_s, _Words(format_seconds, change, PHASES_HOW)
        ),
        _amounts("parts", "Where traced time went", _named(changes.parts), _Words(format_percent, points)),
        _amounts("ledger", "Memory at the peak", changes.ledger_bytes, _Words(format_bytes, change)),
        _amounts(
            "compiled", "Compilation", changes.compiled, _Words(lambda value: f"{value or 0:.0f}", _count)
        ),
        _settings(changes),
    ]
    told = [section for section in made if section is not None]
    if comparison.ratio_of_medians is not None:
        return told
    return [
        section._replace(table=_without_changes(section.table))
        for section in told
        if section.table is not None
    ]


def _without_changes(table: Table) -> Table:
    if table.columns[-1] != "change":
        return table
    return Table(table.columns[:-1], [row[:-1] for row in table.rows])


def _named(parts: Sequence[Amount]) -> list[Amount]:
    return [Amount(name=PART_NAMES.get(part.name, part.name), a=part.a, b=part.b) for part in parts]


class _Words(NamedTuple):
    said: Callable[[float | None], str]
    change: Callable[[Amount], str]
    how: str = ""


def _amounts(slug: str, title: str, amounts: Sequence[Amount], words: _Words) -> Section | None:
    rows = [
        (amount.name, words.said(amount.a), words.said(amount.b), words.change(amount)) for amount in amounts
    ]
    return Section(slug, title, [], Table(("part", *SIDES, "change"), rows), words.how) if rows else None


def points(amount: Amount) -> str:
    """By how much one share differs from another, in hundredths of the whole.

    >>> points(Amount(name="data", a=0.5, b=0.125)), points(Amount(name="h2d", a=0.2, b=0.2001))
    ('-37.5 points', 'same')
    """
    found = (amount.b - amount.a) * 100
    return (
        "same" if abs(found) < SAME * 100 else f"{'+' if found > 0 else '-'}{significant(abs(found))} points"
    )


def _count(amount: Amount) -> str:
    return "same" if amount.a == amount.b else f"{amount.b - amount.a:+.0f}"


def change(amount: Amount) -> str:
    """By how much B differs.

    >>> change(Amount(name="data", a=2.0, b=1.0)), change(Amount(name="h2d", a=0.0, b=1.0))
    ('-50.0 %', 'new')
    >>> change(Amount(name="rest", a=1.0, b=3.0))
    '3.00×'
    """
    if amount.a == amount.b:
        return "same"
    if not amount.a:
        return "new"
    if not amount.b:
        return "gone"
    share = amount.b / amount.a - 1
    if share > 1:
        return f"{significant(amount.b / amount.a)}×"
    return "same" if abs(share) < SAME else f"{'+' if share > 0 else ''}{format_percent(share)}"


def _findings(changes: RunChanges) -> Section | None:
    rows = [("gone", *_finding(finding)) for finding in changes.findings_gone]
    rows += [("new", *_finding(finding)) for finding in changes.findings_new]
    if not rows:
        return None
    how = f"{counted(changes.num_findings_kept, 'finding')} on both sides. A finding is the same where rule, file and operator are."
    table = Table(("", "rule", "where", "what"), rows, frozenset({1, 2, 3}))
    return Section("findings", "Findings that came and went", [], table, how)


def _finding(finding: Finding) -> tuple[str, str, str]:
    return f"{finding.code} {finding.name}", place_text(finding.where), finding.message


def _settings(changes: RunChanges) -> Section | None:
    rows = [(setting.name, setting.a, setting.b) for setting in changes.settings]
    if rows:
        return Section(
            "settings",
            "Versions and settings that differ",
            [],
            Table(("setting", *SIDES), rows, frozenset({1, 2})),
        )
    return None
