"""The whole checklist for one program, and its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyrometer.rules.audit.items.compilation import COMPILATION
from pyrometer.rules.audit.items.compute import COMPUTE
from pyrometer.rules.audit.items.data import DATA
from pyrometer.rules.audit.items.deployment import DEPLOYMENT
from pyrometer.rules.audit.items.design import DESIGN
from pyrometer.rules.audit.items.distributed import DISTRIBUTED
from pyrometer.rules.audit.items.measuring import MEASURING
from pyrometer.rules.audit.items.memory import MEMORY
from pyrometer.rules.audit.record import Audit, AuditGroup
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

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

LOW, HIGH = 70.0, 90.0


def audit(case: Case, findings: Sequence[Finding]) -> Audit:
    """Answer every item from the evidence and from what the rules found in it.

    The score is 100 · passed / (passed + failed): what does not apply or is not known counts neither way.
    """
    groups = [
        AuditGroup(name=name, items=[item.answer(case, findings) for item in items])
        for name, items in GROUPS.items()
    ]
    statuses = [item.status for group in groups for item in group.items]
    passed, applicable = statuses.count("pass"), statuses.count("pass") + statuses.count("fail")
    score = 100 * passed / applicable if applicable else None
    return Audit(
        target=case.target,
        groups=groups,
        score=score,
        band=band(score),
        applicable=applicable,
        passed=passed,
        unknown=statuses.count("unknown"),
    )


def band(score: float | None) -> Literal["below 70", "70 to 90", "above 90"] | None:
    """The band of a score.

    >>> band(69.9), band(70.0), band(90.0), band(90.1)
    ('below 70', '70 to 90', '70 to 90', 'above 90')
    """
    if score is None:
        return None
    return "below 70" if score < LOW else "above 90" if score > HIGH else "70 to 90"
