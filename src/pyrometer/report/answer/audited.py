"""Short answers of an audit: the score, what failed, and how each group stands."""

from __future__ import annotations

from pyrometer.report.answer import trust
from pyrometer.report.answer.measured import named
from pyrometer.report.answer.short import Fix, Part, ShortAnswer, Whole
from pyrometer.report.documents import AuditDocument
from pyrometer.report.facts import audit as of_audit
from pyrometer.rules.audit.record import Audit, AuditGroup, AuditItem


def of_document(document: AuditDocument) -> ShortAnswer:
    """The score; the failed items, what costs most first; the groups."""
    audit, m = document.audit, document.evidence.measurement
    return ShortAnswer(
        named(document.target),
        of_audit.headline(audit),
        bound=of_audit.subtitle(audit),
        fixes=_failed(audit),
        fixes_title="Failed",
        whole=Whole("How each group stands", "", _groups(audit)),
        trust="" if m is None else trust.of_measurement(m),
        improve="" if m is None else trust.command(m.warnings).replace(" check ", " audit ", 1),
    )


def _failed(audit: Audit) -> list[Fix]:
    items = [item for group in audit.groups for item in group.items if item.status == "fail"]
    return [_fix(item) for item in sorted(items, key=lambda item: -item.lost)]


def _fix(item: AuditItem) -> Fix:
    place = next((lost.where.text for lost in item.deductions if lost.where.file is not None), "")
    points = f"−{item.lost:.1f} points" if item.lost >= of_audit.SHOWN else "no points"
    return Fix(item.title, points, item.code, item.reason, named(place) if place else "", item.advice or "")


def _groups(audit: Audit) -> list[Part]:
    """A row for each group in which something failed, and one for all others."""
    counts = [(group.name, *_counts(group)) for group in audit.groups]
    rows = [(name, passed, judged) for name, passed, judged in counts if passed < judged]
    whole = sum(judged for _, passed, judged in counts if passed == judged)
    rows += [("all other groups", whole, whole)] if whole else []
    return [Part(name, f"{passed} of {judged}", passed / judged) for name, passed, judged in rows]


def _counts(group: AuditGroup) -> tuple[int, int]:
    """Items that passed, and those that passed or failed."""
    passed = sum(item.status == "pass" for item in group.items)
    return passed, passed + sum(item.status == "fail" for item in group.items)
