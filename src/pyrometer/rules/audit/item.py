"""One line of the checklist, and how it is answered from findings and evidence.

An item fails when one of its rules found something, in the run or in the text; it passes only on a proof, which is a figure
that would look different if the item did not hold; without either, or where a rule of it is ignored, it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyrometer.evidence.kinds import RecordKind
from pyrometer.rules.audit.record import AuditItem, Deduction, Status
from pyrometer.rules.audit.scoring import Breach
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding, Value

Proof = Callable[[Case], dict[str, Value] | None]
"""Figures that show that the item holds; null where they are not known."""

Fault = Callable[[Case], "Failure | None"]
"""What is wrong beyond what the rules say; null when nothing is."""

Applies = Callable[[Case], str | None]
"""Why the item does not apply; null when it does."""


def proof_of(kind: RecordKind, **figures: Callable[[Any], Value]) -> Proof:
    """Figures of one part of the evidence, by their names; null where that part is not there."""

    def prove(case: Case) -> dict[str, Value] | None:
        part = getattr(case, kind)
        return None if part is None else {name: figure(part) for name, figure in figures.items()}

    return prove


def source_read(case: Case) -> dict[str, Value] | None:
    """The proof of what is looked for in the source alone."""
    return {"files_read": len(case.modules)} if case.modules else None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an item does not hold."""

    reason: str
    evidence: dict[str, Value]
    advice: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing that must hold.

    Attributes:
        code: stable; its first digit is the group.
        title: what must hold, as a statement.
        rules: codes of the rules whose findings break it.
        family: findings of this family break it, where no item names their rule.
        proof: what it passes on.
        fault: a check of its own, beside the rules.
        applies: when it does not concern a program.
        needed: what to observe so that it can be told.
    """

    code: str
    title: str
    needed: str
    proof: Proof
    rules: tuple[str, ...] = ()
    family: str | None = None
    fault: Fault | None = None
    applies: Applies | None = None

    def answer(
        self,
        case: Case,
        breaches: Sequence[Breach] = (),
        deductions: Sequence[Deduction] = (),
        ignored: Mapping[str, str] = MappingProxyType({}),
    ) -> AuditItem:
        """The item's status for one program.

        Args:
            case: the program.
            breaches: findings of its rules.
            deductions: what they take from the score.
            ignored: rules that the settings leave out, and why.
        """
        lost = list(deductions)
        broken = [breach.finding for breach in breaches if breach.excused is None]
        if broken:
            worst = max(broken, key=lambda finding: _points(finding, lost))
            return self._item("fail", worst.message, _figures(worst), worst.advice.text, lost)
        why_not = self.applies(case) if self.applies is not None else None
        failure = self.fault(case) if self.fault is not None and why_not is None else None
        if failure is not None:
            return self._item("fail", failure.reason, failure.evidence, failure.advice, lost)
        if why_not is not None and not breaches:
            return self._item("not applicable", why_not)
        silent = [(breach.finding.code, breach.excused or "without a reason") for breach in breaches]
        silent += [(code, ignored[code]) for code in self.rules if code in ignored]
        if silent:
            return self._item("unknown", "{} is ignored: {}".format(*silent[0]), lost=lost)
        return self._proved(case)

    def _proved(self, case: Case) -> AuditItem:
        proved: dict[str, Value] = {
            name: value for name, value in (self.proof(case) or {}).items() if value is not None
        }
        if not proved:
            return self._item("unknown", f"not observed: {self.needed}")
        return self._item("pass", _told(proved), proved)

    def _item(
        self,
        status: Status,
        reason: str,
        evidence: dict[str, Value] | None = None,
        advice: str | None = None,
        lost: Sequence[Deduction] = (),
    ) -> AuditItem:
        return AuditItem(
            code=self.code,
            title=self.title,
            status=status,
            evidence=evidence or {},
            reason=reason,
            advice=advice,
            rules=list(self.rules),
            lost=sum(deduction.points for deduction in lost),
            deductions=list(lost),
        )


def _points(finding: Finding, deductions: Iterable[Deduction]) -> float:
    return max(
        (
            deduction.points
            for deduction in deductions
            if (deduction.code, deduction.where) == (finding.code, finding.where)
        ),
        default=0.0,
    )


def _figures(finding: Finding) -> dict[str, Value]:
    place = finding.where
    at = {"file": place.file, "line": place.line} if place.file is not None else {}
    return {"finding": finding.code, **at, **finding.evidence}


def _told(proved: dict[str, Value]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in proved.items())


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
