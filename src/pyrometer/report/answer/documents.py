"""Every kind of document that has a short answer, and what makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType

from pyrometer.report import kinds
from pyrometer.report.answer.short import ShortAnswer
from pyrometer.report.documents import Document

ANSWERS: Mapping[str, str] = MappingProxyType({
    "audit": "audited:of_document",
    "bench": "benched:of_document",
    "check": "measured:of_check",
    "compile": "compilation:of_document",
    "guard": "guarded:of_document",
    "guard-proof": "guarded:of_document",
    "guard-record": "guarded:of_document",
    "logs": "logged:of_document",
    "matrix": "benched:of_matrix",
    "memory": "memory:of_program",
    "rollout": "rolled:of_document",
    "scale": "scaled:of_document",
    "snapshot": "memory:of_snapshot_file",
    "trace": "traces:of_document",
    "tune": "tuned:of_document",
})  # fmt: skip
"""Kind of document: what makes its short answer, imported when one of the kind is told."""


def short_answer(document: Document, page: str | None = None) -> ShortAnswer | None:
    """The short answer of a document; null of kinds that are short as they are.

    Args:
        document: what a verb found.
        page: where its page was written, if it was.
    """
    kind = kinds.kind_of(document)
    if kind not in ANSWERS:
        return None
    report = page or getattr(document, "report_path", None)
    kept = {"Report": report} if report else {}
    if document.run_id is not None:
        kept["Run"] = f"pyrometer show {document.run_id}"
    answer: Callable[[Document], ShortAnswer] = resolve_name(f"pyrometer.report.answer.{ANSWERS[kind]}")
    return answer(document)._replace(kept=kept)
