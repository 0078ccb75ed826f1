"""Records as files: a page, data or Markdown, by the suffix."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from pyrometer.errors import InputError
from pyrometer.record import Record, to_dict
from pyrometer.redaction import redacted
from pyrometer.report import html, kinds, markdown
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document, EvidenceDocument
from pyrometer.report.notebook.fragment import Fragment, fragment_of

SUFFIXES = (".html", ".json", ".md")


def save(record: Record, path: Path) -> Path:
    """Write a record, without secrets: beside its place first, then renamed.

    Raises:
        InputError: another suffix, or a place that cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{path}: the suffix says the form; legal are {', '.join(SUFFIXES)}; name a file such as report.html"
        )
    attachments = record.attachments if isinstance(record, EvidenceDocument) else None
    record = redacted(record)
    if suffix == ".json":
        content = record.to_json() + "\n"
    elif kinds.is_document(record):
        content = _of_document(cast("Document", record), suffix, attachments)
    else:
        content = _page(record) if suffix == ".html" else _markdown(fragment_of(record))
    return html.save_page(content, path)


def _of_document(document: Document, suffix: str, attachments: Attachments | None) -> str:
    if suffix == ".html":
        return html.page(document, attachments)
    return markdown.render_document(kinds.kind_of(document), to_dict(document))


def _page(record: Record) -> str:
    fragment = record._repr_mimebundle_()["text/html"]
    head = '<!doctype html>\n<meta charset="utf-8">\n<meta name="generator" content="Pyrometer">\n'
    return f"{head}<title>{type(record).__name__}</title>\n{fragment}\n"


def _markdown(fragment: Fragment) -> str:
    parts = [f"## {markdown.escape(fragment.headline)}", markdown.escape(fragment.subtitle)]
    for section in fragment.sections:
        parts.append(f"### {markdown.escape(section.title)}")
        parts += [f"- {markdown.escape(fact.label)}: {markdown.escape(fact.line)}" for fact in section.facts]
        parts += [markdown.table(section.table)] if section.table is not None else []
    return "\n\n".join(part for part in parts if part) + "\n"
