"""From evidence to a diagnosis: every rule whose evidence is there is asked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from pyrometer.evidence.evidence import Evidence
from pyrometer.place import Place
from pyrometer.rules.audit.record import Audit
from pyrometer.rules.bounded import bounded, wins_nothing
from pyrometer.rules.case import Case, case_of
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.rules.habits import by_habit
from pyrometer.rules.hiding import hidden_by
from pyrometer.rules.joining import module_of
from pyrometer.rules.match import Match
from pyrometer.rules.ranking import ranked
from pyrometer.rules.reading.steps import read_profile
from pyrometer.rules.registry import rules
from pyrometer.rules.rule import Kind, Module, Rule
from pyrometer.rules.settings import RuleSettings
from pyrometer.source.rewriting import rewritten
from pyrometer.text import shown_path

Hide = Callable[[Finding], Suppressed | None]
"""Says why a finding is not to be shown, or null."""


def explain(
    evidence: Evidence,
    entries: Iterable[Path] = (),
    settings: RuleSettings | None = None,
    *,
    with_audit: bool = False,
    among: Callable[[Rule], bool] | None = None,
) -> Diagnosis:
    """Say what evidence means: the one way from what was observed to findings.

    Args:
        evidence: what was observed.
        entries: files that the program begins with; their source, and what they import from beside them, is read too.
        settings: which rules to ask, with which limits, and what not to show; by default all stable rules.
        with_audit: answer the checklist as well.
        among: which of the rules that the settings choose concern the question; by default all.
    """
    settings = settings or RuleSettings()
    modules, notes = _read_program(entries, settings)
    case = case_of(evidence, modules=tuple(modules), limits=settings.limits)
    hide = hidden_by(case.modules, settings)
    chosen = settings.chosen() if modules else settings.chosen_for(frozenset(case.kinds()))
    pool = [rule for rule in chosen if among is None or among(rule)]
    findings = _ask_all(case, pool, notes)
    diagnosis = _diagnosis(case, pool, findings, hide)
    answered = _audited(case, settings, findings, hide) if with_audit else None
    score = None if answered is None else answered.score
    return msgspec.structs.replace(diagnosis, audit=answered, score=score, notes=notes)


def _read_program(entries: Iterable[Path], settings: RuleSettings) -> tuple[Sequence[Module], list[str]]:
    entries = tuple(entries)
    if not entries:
        return (), []
    from pyrometer.source.program import program_modules

    return program_modules(entries, settings.limits)


def diagnose_case(case: Case, chosen: Sequence[Rule] | None = None, hide: Hide | None = None) -> Diagnosis:
    """Ask the chosen rules, rank what they find, and read the profile in the order in which an expert does.

    A rule that fails is left out and told in the notes: the findings of the others stand. What rules say of
    the measurement is no finding about the program, and stands apart.
    """
    pool = rules() if chosen is None else chosen
    notes: list[str] = []
    findings = _ask_all(case, pool, notes)
    return msgspec.structs.replace(_diagnosis(case, pool, findings, hide), notes=notes)


def _ask_all(case: Case, pool: Iterable[Rule], notes: list[str]) -> list[Finding]:
    return [finding for rule in pool for finding in _asked(rule, case, notes)]


def _diagnosis(case: Case, pool: Sequence[Rule], findings: Sequence[Finding], hide: Hide | None) -> Diagnosis:
    reservations = [finding for finding in findings if finding.scope == "measurement"]
    found = [finding for finding in findings if finding.scope != "measurement"]
    answers = [(finding, hide(finding) if hide is not None else None) for finding in found]
    shown = _in_order(case, by_habit(finding for finding, reason in answers if reason is None))
    return Diagnosis(
        target=case.target,
        findings=shown,
        reading=read_profile(case, [*shown, *reservations]),
        reservations=reservations,
        suppressed=[reason for _, reason in answers if reason is not None],
        num_rules=num_asked(case, pool),
        missing=missing_kinds(case),
    )


def _in_order(case: Case, findings: Iterable[Finding]) -> list[Finding]:
    peak_bytes = case.memory.peak_bytes if case.memory is not None else None
    one_track = case.trace is not None and not case.trace.device_busy_ns
    return ranked(findings, peak_bytes=peak_bytes, modules=case.modules, one_track=one_track)


def _audited(case: Case, settings: RuleSettings, findings: Sequence[Finding], hide: Hide) -> Audit:
    """The checklist on what is found, what is ignored, and what linting finds in the text beside it."""
    from pyrometer.rules.audit.audit import audit

    pool = settings.chosen()
    left_out = [rule for rule in rules() if rule.stage == "stable" and rule not in pool]
    ignored = {rule.code: settings.reason_of(rule) for rule in left_out}
    all_found = [*findings, *_ask_all(case, left_out, [])]
    ordered = _in_order(case, [finding for finding in all_found if finding.scope != "measurement"])
    loud = [finding for finding in ordered if finding.severity != "info"]
    texts = [
        finding
        for rule in (*pool, *left_out)
        if rule.severity != "info"
        for finding in map(_near, _in_text(rule, case))
        if not _told(finding, [other for other in loud if other.code == rule.code], case)
    ]

    def excuse(finding: Finding) -> str | None:
        hidden = hide(finding)
        return ignored.get(finding.code) if hidden is None else hidden.reason

    return audit(case, ordered, texts, ignored=ignored, excuse=excuse)


def _near(finding: Finding) -> Finding:
    """The same with its file as seen from the working directory: records hold whole paths, or shortened ones."""
    file = finding.where.file
    if file is None or not Path(file).is_absolute():
        return finding
    where = msgspec.structs.replace(finding.where, file=shown_path(Path(file)))
    return msgspec.structs.replace(finding, where=where)


def _asked(rule: Rule, case: Case, notes: list[str]) -> list[Finding]:
    try:
        findings = [bounded(_near(finding), case) for finding in findings_of(case, [rule])]
        return [finding for finding in findings if not wins_nothing(finding)]
    except Exception as error:  # noqa: BLE001 - the fault of one rule must not hide what others found
        failed = f"{type(error).__name__}: {error}"
        notes.append(f"{rule.code} {rule.name} could not answer ({failed}); please report it")
        return []


def findings_of(case: Case, chosen: Iterable[Rule] | None = None) -> list[Finding]:
    """All findings of the chosen rules, unranked; what a record and the source both show is told once."""
    findings: list[Finding] = []
    for rule in rules() if chosen is None else chosen:
        seen = list(_in_records(rule, case))
        findings += seen
        findings += [finding for finding in in_source(rule, case) if not _told(finding, seen, case)]
    return findings


def _in_records(rule: Rule, case: Case) -> Iterator[Finding]:
    """A rule's findings in records; of a trace of several ranks with the rank that is looked at."""
    for needs, check in rule.readings:
        if not all(map(case.has, needs)):
            continue
        rank = case.trace.rank if case.trace is not None and case.ranks and "trace" in needs else None
        for finding in check(case):
            yield finding if rank is None or finding.where.rank is not None else _on_rank(finding, rank)


def _on_rank(finding: Finding, rank: int) -> Finding:
    return msgspec.structs.replace(finding, where=msgspec.structs.replace(finding.where, rank=rank))


def in_source(rule: Rule, case: Case) -> Iterator[Finding]:
    """A rule's matches in the user's own files, as findings.

    Where a record could have confirmed a match and does not, it is a remark: the run shows where time and memory go, and
    not there. What only costs on an accelerator is left out where the program used none.
    """
    if rule.about_devices and case.trace is not None and not case.trace.device_busy_ns:
        return
    seen = any(all(map(case.has, needs)) for needs, _ in rule.readings)
    measured = rule.family == "measuring" and case.measurement is not None
    for finding in _in_text(rule, case):
        remark = (seen or measured) and finding.severity == "warning"
        yield msgspec.structs.replace(finding, severity="info") if remark else finding


def _in_text(rule: Rule, case: Case) -> Iterator[Finding]:
    """A rule's matches as linting tells them, whatever the run showed."""
    for module in case.modules:
        for match in rule.matches(module):
            yield source_finding(rule, module, match)


def source_finding(rule: Rule, module: Module, match: Match) -> Finding:
    """A match in a file as a finding: what it costs is not known from text."""
    fix = match.fix
    return rule.finding(
        message=match.message,
        where=Place(file=module.path, line=match.line),
        evidence={} if match.hot is None else {"hot_because": match.hot},
        fix_class=fix.fix_class if fix is not None else rule.fix_class,
        confidence=match.confidence,
        advice=match.advice or rule.section("Use instead").partition("\n\n")[0],
        rewrite=rewritten(module, fix.edits) if fix is not None else None,
    )


def missing_kinds(case: Case) -> list[str]:
    """Kinds of evidence that were not observed."""
    return [kind for kind in get_args(Kind) if not case.has(kind)]


def num_asked(case: Case, chosen: Iterable[Rule] | None = None) -> int:
    """Rules that had the evidence which they need."""
    pool = rules() if chosen is None else chosen
    return sum(
        bool(rule.source_checks and case.modules)
        or any(all(map(case.has, needs)) for needs, _ in rule.readings)
        for rule in pool
    )


def _told(finding: Finding, others: list[Finding], case: Case) -> bool:
    """Whether a record already showed what a match in the source says, with its cost."""
    here = module_of(finding.where.file, case.modules)
    return any(
        other.where.line == finding.where.line and module_of(other.where.file, case.modules) is here
        for other in others
    )
