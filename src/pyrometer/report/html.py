"""One self-contained HTML file per result: no network; it opens from disk, prints and mails.

All of it can be read without its script, which divides it into pages and draws what is better explored than read. The
document itself travels in a data block of the page, so that the page can be turned back into data.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.redaction import redacted
from pyrometer.report import kinds
from pyrometer.report.attachments import Attachments
from pyrometer.report.chapters.documents import tell
from pyrometer.report.charts.graphs import pictures
from pyrometer.report.charts.shares import colour_class, share_bar
from pyrometer.report.documents import Document
from pyrometer.report.drawings import drawn
from pyrometer.report.excerpts import excerpts
from pyrometer.report.facts import compile_breaks, surroundings
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts.layout import percent, shortened, spans
from pyrometer.report.inline import inline, script
from pyrometer.report.navigation import assemble, replaced
from pyrometer.report.page_parts import (
    PageParts,
    anchor,
    attributes,
    counted,
    first_screen,
    folded_parts,
    parted,
)
from pyrometer.report.payloads.beside import beside_script, spoken
from pyrometer.report.payloads.block import document_element, element
from pyrometer.report.payloads.blocks import blocks_of
from pyrometer.report.templating import environment
from pyrometer.report.widgets import places

SAID = "<!-- said -->"
"""Stands for the sentences of a page until all of it is made."""

MOST_ROWS = 25
"""Rows of a table; the document holds more."""


def render_document(kind: str, document: dict[str, Any], attachments: Attachments | None = None) -> str:
    """Render a stored document as a page.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    return page(kinds.read_document(kind, document), attachments)


def page(document: Document, attachments: Attachments | None = None) -> str:
    """The page that shows a document, without secrets; the same document and attachments give the same bytes."""
    kind = kinds.kind_of(document)
    document, shown = redacted(document), redacted(attachments or Attachments())
    blocks = list(blocks_of(document, shown))
    widgets = list(places(block.name for block in blocks))
    told = tell(document)
    made = _template().render(
        kind=kind,
        document=document,
        target=surroundings.named_target(document),
        style=inline("report.css"),
        early=inline("theme.js"),
        app=script({place.widget for place in widgets}),
        data=document_element(kind, document),
        missing=shown.missing,
        blocks=[*map(element, blocks), *beside_script(blocks)],
        told=told,
        screen=first_screen(told),
        page=PageParts(widgets, excerpts(document, shown.sources), folded_parts(told, widgets)),
        said=SAID,
    )
    return made.replace(SAID, spoken(made, blocks), 1)


def write_report(document: Document, path: Path, attachments: Attachments | None = None) -> Path:
    """Write the page of a document: beside the target first, then renamed, so that no half-written file is left.

    Raises:
        InputError: the place cannot be written.
    """
    return save_page(page(document, attachments), path)


def save_page(content: str, path: Path) -> Path:
    """Write a page that was made, in the same way.

    Raises:
        InputError: the place cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            beside.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot write the report ({error.strerror}); pass another place") from error
    return path


def failed_in(headline: str) -> Markup:
    """A headline about a failure, whose first words, which say where, are apart from the program's own.

    >>> str(failed_in("failed in step 3: <E>")), str(failed_in("29.3 ms per step before"))
    ('<span>failed in step 3</span>: &lt;E&gt;', '<span>29.3 ms per step before</span>')
    """
    where, colon, what = headline.partition(": ")
    return Markup("<span>{}</span>{}{}").format(where, colon, what)


@cache
def _template() -> jinja2.Template:
    templates = environment("pyrometer.report")
    templates.filters |= {
        "anchor": anchor,
        "assemble": assemble,
        "attributes": attributes,
        "colour_class": colour_class,
        "counted": counted,
        "drawn": drawn,
        "exactness": lambda name: compile_breaks.EXACTNESS.get(name, name),
        "failed_in": failed_in,
        "kind": lambda block: type(block).__name__,
        "parted": parted,
        "percent": percent,
        "pictures": pictures,
        "replaced": replaced,
        "saving": of_memory.saving,
        "share_bar": share_bar,
        "shortened": lambda table: shortened(table, MOST_ROWS),
        "spans": spans,
    }
    return templates.get_template("page.html.j2")
