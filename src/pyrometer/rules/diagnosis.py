"""Everything that the rules made of one program's evidence."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.record import Record, doc
from pyrometer.rules.audit.record import Audit
from pyrometer.rules.finding import Finding, Suppressed, Value


class ReadingStep(Record, frozen=True, kw_only=True):
    """One question that an expert asks of a profile, in the order of asking, and the answer here."""

    question: str
    answer: Annotated[str, doc("a sentence with its figures")]
    verdict: Annotated[
        Literal["fine", "look", "bad", "unknown"],
        doc("bad: go no further before it is mended; unknown: not observed"),
    ]
    evidence: dict[str, Value] = {}
    codes: Annotated[list[str], doc("of the findings that belong to this step")] = []


class Diagnosis(Record, frozen=True, kw_only=True):
    """Findings, the most rewarding first; how they were come by; and the score of the audit."""

    target: str
    findings: list[Finding]
    reading: list[ReadingStep]
    reservations: Annotated[
        list[Finding], doc("how far the figures hold: about the measurement, not the program")
    ] = []
    suppressed: list[Suppressed] = []
    audit: Audit | None = None
    score: Annotated[float | None, doc("0 to 100, of the audit; null when nothing could be judged")] = None
    num_rules: Annotated[int, doc("rules whose evidence was there")] = 0
    missing: Annotated[list[str], doc("kinds of evidence that were not observed")] = []
    notes: Annotated[list[str], doc("rules that could not answer, and why")] = []
