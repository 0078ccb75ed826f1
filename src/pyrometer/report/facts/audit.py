"""An audit as it is told: the score, then a table per group."""

from __future__ import annotations

from pyrometer.quantity import counted, format_percent
from pyrometer.report.facts.layout import Section, Table
from pyrometer.rules.audit.record import Audit, AuditGroup, AuditItem, Deduction
from pyrometer.text import with_capital

BANDS = {
    "below 70": "much to gain",
    "70 to 90": "sound, with things left to do",
    "above 90": "in good order",
}

SHOWN = 0.05
"""Points below which a loss is not worth a line."""

_BECAUSE = {
    "step": "{share} of the step can be saved",
    "peak": "{share} of the peak can be saved",
    "results": "results are wrong, or memory runs out",
    "unmeasured": "its cost was not measured",
    "text": "it stands in the source; the run does not show its cost",
}


def headline(audit: Audit) -> str:
    """The score and what it means."""
    if audit.score is None or audit.band is None:
        return "no score: " + (audit.notes[0] if audit.notes else "no item of the checklist could be judged")
    return f"score {audit.score:.0f} of 100: {BANDS[audit.band]}"


def subtitle(audit: Audit) -> str:
    """How many items hold."""
    unknown = f"; {counted(audit.unknown, 'item')} could not be told" if audit.unknown else ""
    return f"{audit.passed} of {counted(audit.applicable, 'applicable item')} passed{unknown}"


def losses(audit: Audit) -> Section | None:
    """Each point that is lost, most first: the item, the finding, and what the cost rests on; None where nothing is."""
    lost = [
        (item.code, deduction)
        for group in audit.groups
        for item in group.items
        for deduction in item.deductions
        if deduction.points >= SHOWN
    ]
    if not lost:
        return None
    rows = [
        (f"{deduction.points:.1f}", item, _named(deduction), _cost(deduction))
        for item, deduction in sorted(lost, key=lambda pair: -pair[1].points)
    ]
    table = Table(("points", "item", "finding", "because"), rows, frozenset({1, 2, 3}))
    return Section("points-lost", "Where points are lost", [], table)


def _named(deduction: Deduction) -> str:
    at = f" at {deduction.where.text}" if deduction.where.file is not None else ""
    return f"{deduction.code}{at}" if deduction.code is not None else deduction.message


def _cost(deduction: Deduction) -> str:
    share = format_percent(deduction.share)
    text = _BECAUSE[deduction.basis].format(share=share)
    return (
        text if deduction.ignored is None else f"{text}; ignored: {deduction.ignored or 'without a reason'}"
    )


def sections(audit: Audit) -> list[Section]:
    """A chapter per group: what fails first, then what is not known, what passed, what does not apply."""
    return [_section(group) for group in audit.groups if group.items]


ORDER = ("fail", "unknown", "pass", "not applicable")


def title(group: AuditGroup) -> str:
    """A group's name, and how many of its items passed."""
    passed = sum(item.status == "pass" for item in group.items)
    judged = passed + sum(item.status == "fail" for item in group.items)
    text = f"{passed} of {judged}" if judged else "nothing to judge"
    return f"{with_capital(group.name)}: {text}"


def _section(group: AuditGroup) -> Section:
    items = sorted(group.items, key=lambda item: ORDER.index(item.status))
    rows = [(item.code, item.status, item.title, _told(item)) for item in items]
    return Section(
        group.name.replace(" ", "-"),
        title(group),
        [],
        Table(("item", "status", "what must hold", "seen, and what to do"), rows, frozenset({1, 2, 3})),
    )


def _told(item: AuditItem) -> str:
    return item.reason if item.advice is None else f"{item.reason.rstrip('.')}. {item.advice}"
