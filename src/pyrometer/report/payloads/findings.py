"""What a page draws of: findings. The cards themselves stand in the document; here is what filters and copies them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pyrometer.errors import UsageError
from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document, EvidenceDocument
from pyrometer.report.facts.finding_views import FindingView, views
from pyrometer.report.facts.findings import Card
from pyrometer.report.markdown import code_block, escape
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.rules.finding import Severity
from pyrometer.rules.registry import find_rule
from pyrometer.rules.rule import FAMILIES


class FindingEntry(Record, frozen=True, kw_only=True):
    """One card of the document."""

    card: Annotated[str, doc("the id of its element")]
    code: str
    severity: Severity
    family: Annotated[str, doc("of the rule")]
    rewrite: str | None = None
    markdown: Annotated[str, doc("the finding as text for an issue or a review")]


class FindingsPayload(Record, frozen=True, kw_only=True):
    """All findings of a check, in the order of their cards."""

    findings: list[FindingEntry]


def blocks(document: Document, _: Attachments) -> Iterator[Block]:
    """One block, where there are findings."""
    if isinstance(document, EvidenceDocument) and document.diagnosis.findings:
        yield block_of("findings", findings_payload(document))


def findings_payload(document: EvidenceDocument) -> FindingsPayload:
    """The content of the block."""
    return FindingsPayload(
        findings=[
            FindingEntry(
                card=view.card.anchor,
                code=view.card.finding.code,
                severity=view.card.finding.severity,
                family=family_of(view.card.finding.code),
                rewrite=view.card.finding.advice.code,
                markdown=markdown_of(view, document.target),
            )
            for view in views(document.diagnosis.findings)
        ]
    )


def family_of(code: str) -> str:
    """The family of a rule; by its code where the rule is not known here.

    >>> family_of("PYR301")
    'data'
    """
    try:
        return find_rule(code).family
    except UsageError:
        return FAMILIES.get(code[3:4], "other")


def markdown_of(view: FindingView, target: str) -> str:
    """A finding for an issue, a review or a chat: everything that its card says."""
    card: Card = view.card
    finding = card.finding
    title = f"### {escape(card.title)}" + (f" ({escape(card.gain)})" if card.gain else "")
    parts = [title, escape(finding.message), escape(finding.advice.text)]
    parts += [code_block(finding.advice.code)] if finding.advice.code else []
    facts = [("program", target), ("place", card.place), *((fact.label, fact.value) for fact in card.facts)]
    lines = [f"- {escape(label)}: {escape(value)}" for label, value in facts if value]
    lines += [f"- {escape(remark)}" for remark in card.remarks]
    return "\n\n".join([*parts, "\n".join(lines)]) + "\n"
