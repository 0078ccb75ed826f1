"""The result of an audit."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.record import Record, doc
from pyrometer.rules.finding import Value

Status = Literal["pass", "fail", "not applicable", "unknown"]

Basis = Literal["step", "peak", "results", "unmeasured", "text"]
"""What points are counted by: time of a step, bytes of the peak, wrong results, nothing that was measured, or a text that the
run does not bear out."""


class Deduction(Record, frozen=True, kw_only=True):
    """Points that one finding takes from the score."""

    code: Annotated[str | None, doc("of the rule; null for a check of the item's own")] = None
    message: str
    where: Place
    points: Annotated[float, doc("of 100; 0 where a finding before it, or the item, counted the same")]
    share: Annotated[float | None, doc("of the step or the peak that the advice is predicted to save")] = None
    basis: Basis
    ignored: Annotated[str | None, doc("why the finding is ignored; its points count all the same")] = None


class AuditItem(Record, frozen=True, kw_only=True):
    """One line of the checklist."""

    code: Annotated[str, doc("stable, such as A201")]
    title: Annotated[str, doc("what must hold, as a statement")]
    status: Status
    evidence: Annotated[dict[str, Value], doc("what the status rests on; never empty for pass and fail")] = {}
    reason: Annotated[str, doc("one sentence: what was seen, or why it cannot be told or does not apply")]
    advice: Annotated[str | None, doc("what to do; null for what passes")] = None
    rules: Annotated[list[str], doc("codes of the rules that answer it")] = []
    lost: Annotated[float, doc("points that it takes from the score")] = 0.0
    deductions: Annotated[list[Deduction], doc("what they are for, finding by finding")] = []


class AuditGroup(Record, frozen=True, kw_only=True):
    """Items of one subject."""

    name: str
    items: list[AuditItem]


class Audit(Record, frozen=True, kw_only=True):
    """The checklist, answered."""

    target: str
    groups: list[AuditGroup]
    score: Annotated[
        float | None,
        doc(
            "100 less what the items take; null when nothing could be judged, or the measurement was cut short"
        ),
    ]
    band: Annotated[Literal["below 70", "70 to 90", "above 90"] | None, doc("of the score")]
    applicable: Annotated[int, doc("items that passed or failed")]
    passed: int
    unknown: Annotated[int, doc("items without evidence; they count neither way")]
    notes: list[str] = []
