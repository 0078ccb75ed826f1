"""What goes into issues and job summaries."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from document_fixtures import changed
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pyrometer.errors import InputError
from pyrometer.record import to_dict
from pyrometer.report import kinds, markdown
from pyrometer.report.facts.layout import Table

SNAPSHOTS = Path(__file__).parent / "snapshots"
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
CANARY = "</script><img src=x onerror=alert(1)> | `code` *bold* [a](b) ![i](u) @team # <b> https://x.y ~~s~~"


def text_of(document) -> str:
    return markdown.render_document(kinds.kind_of(document), to_dict(document))


@pytest.mark.parametrize(
    "name",
    [
        "steady",
        "training",
        "interrupted",
        "gpu",
        "no_step",
        "verdict_slower",
        "verdict_undecided",
        "matrix",
        "starts",
        "soak",
    ],
)
def test_text_is_as_stored(documents, name):
    path = SNAPSHOTS / f"{name}.md"
    text = text_of(documents[name])
    if os.environ.get("PYROMETER_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_untrusted_text_makes_no_markup(documents):
    document = documents["training"]
    measurement = msgspec.structs.replace(
        document.evidence.measurement, name=CANARY, config=CANARY, failure=CANARY
    )
    script = msgspec.structs.replace(document.evidence.script, argv=[CANARY])
    poisoned = changed(document, target=CANARY, measurement=measurement, script=script)
    tokens = [
        child for token in READER.parse(text_of(poisoned)) for child in (token, *(token.children or []))
    ]
    kinds_seen = {token.type for token in tokens}
    assert not kinds_seen & {
        "html_block",
        "html_inline",
        "image",
        "link_open",
        "code_inline",
        "em_open",
        "s_open",
    }
    assert "@team" not in text_of(poisoned)


@given(st.one_of(st.text(max_size=40), st.text("-+=*_`|<>&@#![]()~\\.1 :/w", max_size=20)))
def test_escaped_text_reads_as_it_was(text):
    words = " ".join(text.replace("\x00", "\ufffd").split())
    tokens = READER.parse(markdown.escape(text))
    assert [token.type for token in tokens] == (
        ["paragraph_open", "inline", "paragraph_close"] if words else []
    )
    children = tokens[1].children if tokens else []
    assert {child.type for child in children} <= {"text", "text_special"}
    assert " ".join("".join(child.content for child in children).split()) == words


@given(st.lists(st.text(max_size=20), min_size=3, max_size=3))
def test_a_row_keeps_its_cells(cells):
    text = markdown.table(Table(("a", "b", "c"), [tuple(cells)]))
    tokens = READER.parse(text)
    assert sum(token.type == "td_open" for token in tokens) == 3


def test_commands_in_hints_stay_commands(documents):
    assert "`--budget 30s`" in text_of(documents["verdict_undecided"])


@pytest.mark.parametrize("kind", ["nonsense", ""])
def test_unknown_kind_is_refused(kind):
    with pytest.raises(
        InputError,
        match="not a kind of document; there are audit, bench, calibration, check, compare, compile",
    ):
        markdown.render_document(kind, {})
