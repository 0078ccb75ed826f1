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
from pyrometer.report import kinds
from pyrometer.report.attachments import Exhibits
from pyrometer.report.documents import Document
from pyrometer.report.excerpts import excerpts
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import surroundings
from pyrometer.report.facts.layout import percent, spans
from pyrometer.report.inline import inline, script
from pyrometer.report.navigation import assemble, page_of, part_places, replaced
from pyrometer.report.page_context import VIEWS, Context
from pyrometer.report.payloads.beside import beside_script
from pyrometer.report.payloads.block import document_element, element
from pyrometer.report.payloads.blocks import blocks_of
from pyrometer.report.templating import environment
from pyrometer.report.widgets import places


def render_document(kind: str, document: dict[str, Any], exhibits: Exhibits | None = None) -> str:
    """Render a stored document as a page.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    return page(kinds.read_document(kind, document), exhibits)


def page(document: Document, exhibits: Exhibits | None = None) -> str:
    """The page that shows a document; the same document and exhibits give the same bytes."""
    kind = kinds.kind_of(document)
    template, view = VIEWS[kind]
    shown = exhibits or Exhibits()
    blocks = list(blocks_of(document, shown))
    widgets = list(places(block.name for block in blocks))
    shell: Context = {
        "kind": kind,
        "document": document,
        "target": surroundings.named_target(document),
        "style": inline("report.css"),
        "early": inline("theme.js"),
        "app": script({place.widget for place in widgets}),
        "data": document_element(kind, document),
        "missing": shown.missing,
        "excerpts": excerpts(document, shown.sources),
        "blocks": [*map(element, blocks), *beside_script(blocks)],
        "widgets": widgets,
    }
    return _templates().get_template(template).render(**shell, **view(document))


def write_report(document: Document, path: Path, exhibits: Exhibits | None = None) -> Path:
    """Write the page of a document: beside the target first, then renamed, so that no half-written file is left.

    Raises:
        InputError: the place cannot be written.
    """
    return save_page(page(document, exhibits), path)


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
def _templates() -> jinja2.Environment:
    templates = environment("pyrometer.report")
    templates.filters |= {
        "assemble": assemble,
        "page": page_of,
        "failed_in": failed_in,
        "part_places": part_places,
        "percent": percent,
        "replaced": replaced,
        "saving": of_memory.saving,
        "spans": spans,
    }
    return templates
