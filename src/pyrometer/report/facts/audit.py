"""An audit as it is told: the score, then a table per group."""

from __future__ import annotations

from pyrometer.quantity import counted
from pyrometer.report.facts.layout import Section, Table
from pyrometer.rules.audit.record import Audit, AuditGroup, AuditItem

BANDS = {
    "below 70": "much to gain",
    "70 to 90": "sound, with things left to do",
    "above 90": "in good order",
}


def headline(audit: Audit) -> str:
    """The score and what it means."""
    if audit.score is None or audit.band is None:
        return "no item of the checklist could be judged"
    return f"score {audit.score:.0f} of 100: {BANDS[audit.band]}"


def subtitle(audit: Audit) -> str:
    """What the score is made of."""
    unknown = (
        f"; {counted(audit.unknown, 'item')} without evidence count neither way" if audit.unknown else ""
    )
    return f"{audit.passed} of {counted(audit.applicable, 'applicable item')} passed{unknown}"


def sections(audit: Audit) -> list[Section]:
    """A chapter per group: what fails first, then what is not known, what passed, what does not apply."""
    return [_section(group) for group in audit.groups if group.items]


ORDER = ("fail", "unknown", "pass", "not applicable")


def title(group: AuditGroup) -> str:
    """A group's name, and how many of its items passed."""
    passed = sum(item.status == "pass" for item in group.items)
    judged = passed + sum(item.status == "fail" for item in group.items)
    text = f"{passed} of {judged}" if judged else "nothing to judge"
    return f"{group.name[:1].upper()}{group.name[1:]}: {text}"


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
