"""Two stored runs beside each other, in words and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import counted, format_bytes, format_percent, format_rate, format_seconds, significant
from pyrometer.report.facts.findings import place_text
from pyrometer.report.facts.layout import Section, Table
from pyrometer.report.facts.trace_words import PART_NAMES
from pyrometer.rules.finding import Finding
from pyrometer.store.changes import Amount, RunChanges
from pyrometer.store.comparison import Comparison
from pyrometer.store.run import RunSummary, created_at

SAME = 0.005
"""Relative difference below which two figures are told as equal."""

FIGURES: tuple[tuple[str, Callable[[Measurement], str]], ...] = (
    ("median", lambda m: format_seconds(m.median_s)),
    ("interval", lambda m: f"{format_seconds(m.ci_low_s)}–{format_seconds(m.ci_high_s)}"),
    ("P95", lambda m: format_seconds(m.p95_s)),
    ("P99", lambda m: format_seconds(m.p99_s)),
    ("first call", lambda m: format_seconds(m.first_call_s)),
    ("throughput", lambda m: format_rate(m.throughput, f"{m.unit}/s")),
    ("peak memory", lambda m: format_bytes(m.peak_bytes)),
    ("samples", lambda m: str(m.num_samples)),
)


def headline(comparison: Comparison) -> str:
    """Which of the two was faster, without a verdict; of two targets, which need not do the same work, what each takes."""
    if comparison.a.run.target != comparison.b.run.target:
        a, b = (format_seconds(side.measurement.median_s) for side in (comparison.a, comparison.b))
        return f"two targets: A takes {a}, B takes {b} per step"
    ratio = comparison.ratio_of_medians
    if abs(ratio - 1) < SAME:
        return "both took the same time"
    said = f"{significant(ratio)}× slower" if ratio > 1 else f"{significant(1 / ratio)}× faster"
    return f"B was {said} than A, not yet proven"


def target(comparison: Comparison) -> str:
    """What is compared with what: one target at two moments, or two targets."""
    a, b = comparison.a.run.target, comparison.b.run.target
    return a if a == b else f"{a} against {b}"


def side_table(comparison: Comparison) -> Table:
    """The two runs and their figures."""
    sides = (comparison.a, comparison.b)
    rows = [
        ("run", *(side.run.id for side in sides)),
        ("target", *(side.run.target for side in sides)),
        ("taken", *(taken(side.run) for side in sides)),
        ("commit", *(commit(side.run) or "–" for side in sides)),
        *((label, *(figure(side.measurement) for side in sides)) for label, figure in FIGURES),
    ]
    return Table(("", "A", "B"), rows)


def sections(changes: RunChanges) -> list[Section]:
    """What changed, part by part; empty parts are left out."""
    made = [
        _amounts("phases", "Phases, mean per step", changes.phases_s, format_seconds),
        _amounts("parts", "Where traced time went", _named(changes.parts), format_percent),
        _amounts("ledger", "Memory at the peak", changes.ledger_bytes, format_bytes),
        _amounts("compiled", "Compilation", changes.compiled, lambda value: f"{value or 0:.0f}"),
        _findings(changes),
        _settings(changes),
    ]
    return [section for section in made if section is not None]


def taken(run: RunSummary) -> str:
    """When a run was made, in the reader's time zone."""
    return f"{created_at(run).astimezone():%Y-%m-%d %H:%M}"


def commit(run: RunSummary) -> str:
    """The commit of a run as people abbreviate it; `+` stands for changes on top of it."""
    return f"{(run.commit_sha or '')[:9]}{'+' if run.dirty else ''}"


def _named(parts: Sequence[Amount]) -> list[Amount]:
    return [Amount(name=PART_NAMES.get(one.name, one.name), a=one.a, b=one.b) for one in parts]


def _amounts(
    slug: str, title: str, amounts: Sequence[Amount], said: Callable[[float | None], str]
) -> Section | None:
    rows = [(one.name, said(one.a), said(one.b), change(one)) for one in amounts]
    return Section(slug, title, [], Table(("part", "A", "B", "change"), rows)) if rows else None


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
    rows = [("gone", *_finding(one)) for one in changes.findings_gone]
    rows += [("new", *_finding(one)) for one in changes.findings_new]
    if not rows:
        return None
    how = f"{counted(changes.num_findings_kept, 'finding')} on both sides. A finding is the same where rule, file and operator are."
    table = Table(("", "rule", "where", "what"), rows, frozenset({1, 2, 3}))
    return Section("findings", "Findings that came and went", [], table, how)


def _finding(finding: Finding) -> tuple[str, str, str]:
    return f"{finding.code} {finding.name}", place_text(finding.where), finding.message


def _settings(changes: RunChanges) -> Section | None:
    rows = [(one.name, one.a, one.b) for one in changes.settings]
    return (
        Section(
            "settings",
            "Versions and settings that differ",
            [],
            Table(("", "A", "B"), rows, frozenset({1, 2})),
        )
        if rows
        else None
    )
