"""Every place in a document that a rule's finding can point at is shown on some page of its report."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from document_fixtures import changed

import pyrometer.rules
from pyrometer.advice import Advice
from pyrometer.evidence.evidence import Evidence
from pyrometer.numerics.report import Gradients, LayerGradient, NonFinite, NumericsReport, Scaling
from pyrometer.place import Place
from pyrometer.report import html
from pyrometer.report.documents import CheckDocument
from pyrometer.report.facts.finding_views import SHOWN_ON, WORDS, shown_in
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding
from pyrometer.workload.program.record import InputTensor, OptimizerFact, Program

RULES = Path(pyrometer.rules.__file__).parent
PARTS = "|".join(Evidence.__struct_fields__)
POINTER = re.compile(rf"/({PARTS})(/|$)")


def produced() -> list[str]:
    """The JSON pointers in the source of the rules; what is filled in is 0."""
    found = set()
    for path in RULES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if POINTER.match(text) and " " not in text:
                found.add(text)
    return sorted(found)


def make_program() -> Program:
    return Program(
        kind="training", device="cpu", compiled=False, grad_mode="grad", settings={"threads": 2},
        inputs=[InputTensor(name="x", shape=[8, 4], dtype="float32", device="cpu", num_bytes=128)],
        optimizer=OptimizerFact(type_name="Adam", num_groups=1, num_tensors=2, num_parameters=40, settings={"lr": 0.1}),
    )  # fmt: skip


def make_numerics() -> NumericsReport:
    layers = [LayerGradient(module=f"block.{i}", num_parameters=16, rms=[1e-3, None]) for i in range(3)]
    return NumericsReport(
        name="net", kind="training", device="cpu", num_steps=4, num_non_finite_steps=1,
        non_finite=NonFinite(
            step=2, kind="nan", seen_in="head", in_result=True, source="operator", origin=Place(file="net.py", line=3, op="aten::div")
        ),
        gradients=Gradients(norms=[1.0, 2.0], trend="growing", layers=layers, never=["head.bias"]),
        scaling=Scaling(scales=[65536.0, 32768.0], final_scale=32768.0, skipped=[1]),
    )  # fmt: skip


def finding(link: str) -> Finding:
    return Finding(
        code="PYR101", name="item-in-hot-loop", severity="warning", message="m", where=Place(),
        confidence="high", advice=Advice(slug="a", title="a", fix_class="semantic"), links=[link],
    )  # fmt: skip


def diagnosed(document: CheckDocument, link: str, **more: Any) -> CheckDocument:
    reading = [ReadingStep(question="is it steady?", answer="yes", verdict="fine")]
    return changed(document, findings=[finding(link)], reading=reading, **more)


def test_rules_produce_many_links_and_each_has_a_place_with_words_for_it():
    pointers = produced()
    assert len(pointers) > 40
    places = {
        pointer: [place.words in WORDS.values() for place in shown_in([pointer])] for pointer in pointers
    }
    assert [pointer for pointer, with_words in places.items() if with_words != [True]] == []


def test_every_place_has_words():
    assert {place for _, place in SHOWN_ON} == set(WORDS)


@pytest.mark.parametrize(
    ("pointer", "href", "words"),
    [
        ("/program/inputs", "#program", "Show in the program&#39;s set-up"),
        ("/numerics/gradients", "#numerics", "Show among the numbers"),
        ("/environment/settings", "#/environment", "Show in the environment"),
    ],
)
def test_a_finding_leads_to_the_chapter_that_shows_its_evidence(perception, pointer, href, words):
    page = html.page(diagnosed(perception, pointer, program=make_program(), numerics=make_numerics()))
    assert f'href="{href}" title="{pointer}">{words}</a>' in page
    assert f'id="{href[1:]}"' in page


def test_a_link_to_evidence_that_the_document_does_not_hold_is_left_out(perception):
    page = html.page(diagnosed(perception, "/numerics/shift"))
    assert 'id="PYR101-item-in-hot-loop"' in page
    assert 'href="#numerics"' not in page


def test_the_chapters_tell_what_was_seen(perception):
    page = html.page(changed(perception, program=make_program(), numerics=make_numerics()))
    for said in (
        "Adam",
        "lr=0.1",
        "[8, 4]",
        "NaN first in step 2",
        "net.py:3 aten::div",
        "head.bias",
        "block.1",
        "32768",
    ):
        assert said in page, said
