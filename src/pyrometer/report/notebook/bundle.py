"""What IPython is given of a record: HTML for notebooks, text for terminals."""

from __future__ import annotations

from functools import cache
from typing import cast

import jinja2

from pyrometer.record import Record
from pyrometer.redaction import redacted
from pyrometer.report.answer.documents import short_answer
from pyrometer.report.answer.lines import screen
from pyrometer.report.documents import Document
from pyrometer.report.facts.layout import Section, percent
from pyrometer.report.inline import asset
from pyrometer.report.kinds import is_document
from pyrometer.report.notebook.fragment import MOST_SECTIONS, Fragment, fragment_of
from pyrometer.report.notebook.picture import COLOURS, picture
from pyrometer.report.notebook.saving import save as save  # noqa: PLC0414 - part of the view
from pyrometer.report.templating import environment
from pyrometer.rules.lint.output.text import line_of, summary_of
from pyrometer.rules.lint.result import LintResult
from pyrometer.text import shortened

FULL = 'save("report.html") writes every chapter'
MOST_SHORT = 240
"""Characters of a record that has no short answer, where it is shown whole."""

MOST_FIELDS = 23
WIDTH = 80
"""Columns of what `print` shows."""


def mime_bundle(record: Record) -> dict[str, str]:
    """The renderings of a record by MIME type, as IPython's `_repr_mimebundle_` returns them."""
    fragment = fragment_of(record)
    return {"text/html": as_html(fragment), "text/plain": as_text(fragment, record)}


def in_short(record: Record) -> str:
    """One line for a record among others, in a list or a dictionary."""
    name, fragment = type(record).__name__, fragment_of(record)
    if fragment.headline == name:
        return shortened(repr(record), MOST_SHORT)
    return f"<{name}: {fragment.headline}>"


def in_text(record: Record) -> str:
    """The short answer of a document, at most 25 lines of 80 columns; of another record its headline."""
    if is_document(record):
        answer = short_answer(cast("Document", redacted(record)))
        if answer is not None:
            answer = answer._replace(more="save()", full=FULL, tries="")
            return "\n".join(line.plain.rstrip() for line in screen(answer, WIDTH))
    if isinstance(record, LintResult):
        return _of_lint(record)
    return as_text(fragment_of(record), record)


def _of_lint(result: LintResult) -> str:
    findings = result.findings[:MOST_FIELDS]
    lines = [shortened(line_of(finding), MOST_SHORT) for finding in findings]
    left = len(result.findings) - len(findings)
    return "\n".join([*lines, *([f"… and {left} more"] if left else []), summary_of(result)])


def as_html(fragment: Fragment) -> str:
    """A fragment with its own style, which touches nothing else on the page; no script."""
    return _template().render(fragment=fragment._replace(sections=_filled(fragment)))


def as_text(fragment: Fragment, record: Record) -> str:
    """The same in a few lines."""
    if fragment.headline == type(record).__name__:
        return whole if len(whole := repr(record)) <= MOST_SHORT else _listed(fragment)
    return "\n".join(shortened(line, MOST_SHORT) for line in (fragment.headline, fragment.subtitle) if line)


def _listed(fragment: Fragment) -> str:
    """The fields of a record, one per line."""
    facts = [fact for section in fragment.sections for fact in section.facts]
    lines = [shortened(f"  {fact.label}: {fact.value}", WIDTH) for fact in facts[:MOST_FIELDS]]
    left = [f"  … and {len(facts) - MOST_FIELDS} more"] if len(facts) > MOST_FIELDS else []
    return "\n".join([fragment.headline, *lines, *left])


def _filled(fragment: Fragment) -> list[Section]:
    with_content = [
        section for section in fragment.sections if section.facts or (section.table and section.table.rows)
    ]
    return with_content[:MOST_SECTIONS]


@cache
def _template() -> jinja2.Template:
    templates = environment("pyrometer.report")
    templates.filters |= {"percent": percent, "picture": picture}
    templates.globals |= {"colours": COLOURS, "style": asset("fragment.css")}
    return templates.get_template("fragment.html.j2")
