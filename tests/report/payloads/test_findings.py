"""The block of findings, and the pages to which their evidence leads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from document_fixtures import changed

import pyrometer.rules
from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.record import from_json
from pyrometer.report.attachments import Attachments
from pyrometer.report.chapters.chapter import Answer, Told
from pyrometer.report.chapters.findings import of_document
from pyrometer.report.facts.finding_views import SHOWN_ON, WORDS, explanation, shown_in, views
from pyrometer.report.navigation import PAGES, assemble
from pyrometer.report.page_parts import first_screen
from pyrometer.report.payloads.findings import FindingsPayload, blocks, family_of
from pyrometer.rules.finding import Finding

NOT_SHOWN = {"numerics", "predict", "program"}
"""What no page draws: a finding tells it in words."""


def finding(code: str, **more: object) -> Finding:
    values = {
        "name": "data-waits", "severity": "warning", "message": "48 % of a step", "where": Place(file="train.py", line=12),
        "confidence": "high", "links": ["/loading/stages"],
    }  # fmt: skip
    advice = Advice(
        slug="a", title="Load with `num_workers=2`.", fix_class="semantic", rewrite=more.pop("rewrite", None)
    )
    return Finding(code=code, advice=advice, **{**values, **more})


@pytest.fixture
def document(documents):
    findings = [finding("PYR301", rewrite="num_workers=2"), finding("PYR301"), finding("PYR999", name="mine")]
    return changed(documents["training"], findings=findings)


def test_one_block_tells_all_findings(document):
    (block,) = blocks(document, Attachments())
    assert block.name == "findings"
    first, _, last = from_json(FindingsPayload, block.content).findings
    assert (first.card, first.family, first.rewrite) == ("finding-1", "data", "num_workers=2")
    assert first.markdown.startswith("### PYR301 data-waits")
    assert last.family == "other"


def test_without_findings_there_is_no_block(documents):
    assert list(blocks(documents["training"], Attachments())) == []
    assert list(blocks(documents["gpu"], Attachments())) == []


def test_each_finding_has_an_address_and_each_rule_one_explanation(document):
    first, second, unknown = views(document.diagnosis.findings)
    assert [view.anchor for view in (first, second, unknown)] == [
        "PYR301-data-waits",
        "PYR301-data-waits-2",
        "PYR999-mine",
    ]
    assert first.explanation is not None
    assert [heading for heading, _ in first.explanation.chapters][:2] == ["What it does", "Why it costs"]
    assert second.explanation is None
    assert explanation("PYR999") is None


def test_what_counts_the_same_cost_comes_after_what_does_not(documents):
    findings = [
        finding("PYR301"),
        finding("PYR302", overlaps=["PYR301"]),
        finding("PYR101"),
        finding("PYR104"),
    ]
    (told,) = of_document(changed(documents["training"], findings=findings))
    screen = first_screen(Told(Answer(""), [told]))
    assert [view.card.finding.code for view in screen.top] == ["PYR301", "PYR101", "PYR104"]
    assert told.lead == ["1 of the 4 cards count the same cost as one above them."]


def test_every_pointer_of_a_rule_leads_to_a_page():
    folder = Path(pyrometer.rules.__file__ or "").parent
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    pointers = set(re.findall(r'"(/[a-z_]+(?:/[^"\s]*)?)"', text))
    assert len(pointers) > 60
    unled = {pointer for pointer in pointers if not shown_in([pointer])}
    assert {pointer.split("/")[1] for pointer in unled} <= NOT_SHOWN


def test_words_and_pages_belong_together():
    assert {place.partition("#")[0] for place in WORDS} <= set(PAGES)
    assert set(WORDS) == {place for _, place in SHOWN_ON}


@pytest.mark.parametrize(("code", "family"), [("PYR101", "host"), ("PYR199", "host"), ("X", "other")])
def test_family_of_a_rule_that_is_not_known_follows_from_its_code(code, family):
    assert family_of(code) == family


def test_links_to_pages_that_are_not_there_are_left_out():
    link = '<a class="to-page" href="#/{}" title="x">Show</a>'
    body = f'<section data-page="memory">{link.format("memory")}{link.format("ranks")}{link.format("flame")}</section>'
    markup = assemble(body, ["flame"]).body
    assert [page for page in ("memory", "ranks", "flame") if f'href="#/{page}"' in markup] == [
        "memory",
        "flame",
    ]


def test_chapters_of_several_areas_keep_their_labels():
    section = '<section data-page="{0}" aria-labelledby="modules"><h2 id="modules">{0}</h2></section>'
    found = str(assemble("".join(section.format(page) for page in ("operators", "memory", "compile"))).body)
    for name in ("modules", "memory-modules", "compile-modules"):
        assert found.count(f'id="{name}"') == 1
        assert found.count(f'aria-labelledby="{name}"') == 1
