"""What `pyrometer audit` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Answers,
    Chapter,
    Rows,
    Told,
)
from pyrometer.report.chapters.surroundings import machine, notes, provenance
from pyrometer.report.documents import AuditDocument
from pyrometer.report.facts import audit as of_audit


def tell(document: AuditDocument) -> Told:
    """The score, what it lost, then the items group by group."""
    answer = Answer(of_audit.headline(document.audit), of_audit.subtitle(document.audit))
    lost = of_audit.losses(document.audit)
    chapters = (
        []
        if lost is None or lost.table is None
        else [Chapter(lost.slug, lost.title, [Rows(lost.table, is_whole=True)])]
    )
    chapters += [
        Chapter(section.slug, section.title, [Answers(section.table, [row[1] for row in section.table.rows])])
        for section in of_audit.sections(document.audit)
        if section.table is not None
    ]
    chapters += notes([*document.notes, *document.audit.notes]) + machine(document.environment, "Judged on")
    return Told(answer, chapters + provenance(document, document.environment))
