"""The whole checklist for one program, and its score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from pyrometer.place import Place
from pyrometer.rules.audit.item import Item
from pyrometer.rules.audit.items.compilation import COMPILATION
from pyrometer.rules.audit.items.compute import COMPUTE
from pyrometer.rules.audit.items.data import DATA
from pyrometer.rules.audit.items.deployment import DEPLOYMENT
from pyrometer.rules.audit.items.design import DESIGN
from pyrometer.rules.audit.items.distributed import DISTRIBUTED
from pyrometer.rules.audit.items.measuring import MEASURING
from pyrometer.rules.audit.items.memory import MEMORY
from pyrometer.rules.audit.record import Audit, AuditGroup, AuditItem, Deduction
from pyrometer.rules.audit.scoring import UNMEASURED, Breach, Score, deduct
from pyrometer.rules.case import Case
from pyrometer.rules.finding import NEIGHBOURS, Finding
from pyrometer.rules.rule import FAMILIES

GROUPS = {
    "model design": DESIGN,
    "memory": MEMORY,
    "compute": COMPUTE,
    "data pipeline": DATA,
    "compilation": COMPILATION,
    "measuring discipline": MEASURING,
    "distributed": DISTRIBUTED,
    "deployment and production": DEPLOYMENT,
}
"""The checklist, in the order in which it is shown."""

_NAMED = frozenset(code for items in GROUPS.values() for item in items for code in item.rules)

LOW, HIGH = 70.0, 90.0


Excuse = Callable[[Finding], str | None]
"""Says why the user ignores a finding; null where nobody does."""


def audit(
    case: Case,
    findings: Sequence[Finding],
    texts: Sequence[Finding] = (),
    *,
    ignored: Mapping[str, str] | None = None,
    excuse: Excuse = lambda _: None,
) -> Audit:
    """Answer every item from the evidence and from what the rules found in it.

    The score is 100 less what findings take by their measured cost. Ignoring a finding leaves its item unknown, and does not
    raise the score. What does not apply or is not known takes nothing.

    Args:
        case: the program.
        findings: ranked, those that are ignored too; remarks break nothing.
        texts: what linting finds in the program's source beside them.
        ignored: codes of rules that the settings leave out, and why.
        excuse: why a finding is ignored.
    """
    breaches = [Breach(finding, excuse(finding)) for finding in findings if _is_fault(finding)]
    breaches += [Breach(finding, excuse(finding), confirmed=False) for finding in texts]
    score = Score()
    owners = [_owner(breach.finding.code) for breach in breaches]
    taken = deduct(score, breaches, owners, case)
    groups = [
        AuditGroup(name=name, items=[_answer(item, case, breaches, taken, ignored or {}) for item in items])
        for name, items in GROUPS.items()
    ]
    groups = [
        AuditGroup(name=group.name, items=[_charged(item, score) for item in group.items]) for group in groups
    ]
    statuses = [item.status for group in groups for item in group.items]
    passed, applicable = statuses.count("pass"), statuses.count("pass") + statuses.count("fail")
    cut_short = case.measurement is not None and not case.measurement.complete
    reached = score.points if (applicable or score.points < 100) and not cut_short else None
    return Audit(
        target=case.target,
        groups=groups,
        score=reached,
        band=band(reached),
        applicable=applicable,
        passed=passed,
        unknown=statuses.count("unknown"),
        notes=["the measurement was cut short: what it did not see cannot be scored"] if cut_short else [],
    )


def _is_fault(finding: Finding) -> bool:
    """Neither a remark, nor about our measurement or the neighbours."""
    ours = finding.scope == "measurement" or (finding.resource or "").endswith(NEIGHBOURS)
    return finding.severity != "info" and not ours


def breaks(item: Item, code: str) -> bool:
    """Whether findings of a rule break an item: one that names it, or else one that stands for its family."""
    if code in item.rules:
        return True
    return code not in _NAMED and item.family is not None and item.family == FAMILIES.get(code[3])


def _answer(
    item: Item, case: Case, breaches: Sequence[Breach], taken: Sequence[Deduction], ignored: Mapping[str, str]
) -> AuditItem:
    own = [breach for breach in breaches if breaks(item, breach.finding.code)]
    lost = [one for one in taken if one.code is not None and _owner(one.code) == item.code]
    return item.answer(case, own, lost, ignored)


def _owner(code: str) -> str | None:
    """The first item that findings of a rule break: their points are counted there."""
    return next((item.code for items in GROUPS.values() for item in items if breaks(item, code)), None)


def _charged(item: AuditItem, score: Score) -> AuditItem:
    """An item that fails by a check of its own takes its points, too."""
    if item.status != "fail" or "finding" in item.evidence:
        return item
    points = score.take(UNMEASURED)
    own = Deduction(message=item.reason, where=Place(), points=points, basis="unmeasured")
    return msgspec.structs.replace(item, lost=item.lost + points, deductions=[*item.deductions, own])


def band(score: float | None) -> Literal["below 70", "70 to 90", "above 90"] | None:
    """The band of a score.

    >>> band(69.9), band(70.0), band(90.0), band(90.1)
    ('below 70', '70 to 90', '70 to 90', 'above 90')
    """
    if score is None:
        return None
    return "below 70" if score < LOW else "above 90" if score > HIGH else "70 to 90"
