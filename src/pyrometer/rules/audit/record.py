"""The result of an audit."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.record import Record, doc
from pyrometer.rules.finding import Value

Status = Literal["pass", "fail", "not applicable", "unknown"]


class AuditItem(Record, frozen=True, kw_only=True):
    """One line of the checklist."""

    code: Annotated[str, doc("stable, such as A201")]
    title: Annotated[str, doc("what must hold, as a statement")]
    status: Status
    evidence: Annotated[dict[str, Value], doc("what the status rests on; never empty for pass and fail")] = {}
    reason: Annotated[str, doc("one sentence: what was seen, or why it cannot be told or does not apply")]
    advice: Annotated[str | None, doc("what to do; null for what passes")] = None
    rules: Annotated[list[str], doc("codes of the rules that answer it")] = []


class AuditGroup(Record, frozen=True, kw_only=True):
    """Items of one subject."""

    name: str
    items: list[AuditItem]


class Audit(Record, frozen=True, kw_only=True):
    """The checklist, answered."""

    target: str
    groups: list[AuditGroup]
    score: Annotated[float | None, doc("100 times passed over applicable; null when nothing applies")]
    band: Annotated[Literal["below 70", "70 to 90", "above 90"] | None, doc("of the score")]
    applicable: Annotated[int, doc("items that passed or failed")]
    passed: int
    unknown: Annotated[int, doc("items without evidence; they count neither way")]
    notes: list[str] = []
