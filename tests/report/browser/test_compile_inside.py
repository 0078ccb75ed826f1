"""Opened parts of graphs, compile time nested, and the ceilings of the roofline, in a browser."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from document_fixtures import changed, document_of

from pyrometer.compiler.costs.record import CacheSummary, Compilation, CompileCost, PhaseTree
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.report.documents import CompileDocument
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.rates import Ceiling
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.totals import RoofPoint

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

CANARY = "</script><img src=x onerror=alert(1)>"
TREE = PhaseTree(
    names=["0/0", "entire_frame_compile", CANARY], phases=["Dynamo tracing", "guards"],
    parent=[-1, 0, 1], name=[0, 1, 2], phase=[-1, 0, 1], calls=[1, 1, 3], own_s=[0.0, 1.0, 3.0],
)  # fmt: skip


def document() -> CompileDocument:
    """A chain of 300 operations in modules of ten, compiled in four seconds."""
    nodes = [GraphNode(name="x", op="input", role="input", dtype="float32", shape=["8"])]
    nodes += [
        GraphNode(
            name=f"n{place}", op="call", target="aten.relu.default", inputs=[f"n{place - 1}" if place else "x"],
            dtype="float32", shape=["8"], module=f"layers.{place // 10}", file="model.py", line=10, source="x = f(x)",
        )
        for place in range(300)
    ]  # fmt: skip
    nodes.append(GraphNode(name="output", op="output", inputs=["n299"]))
    phases = {"Dynamo tracing": 1.0, "guards": 3.0}
    compiled = Compilation(
        compile_id="0/0",
        function="forward",
        file="model.py",
        line=9,
        outcome="compiled",
        total_s=4.0,
        phases_s=phases,
    )
    return document_of(CompileDocument, target="model.py:work", graphs=1, frames=1, skipped_frames=0, breaks=[], recompiles=[], limit_reached=False,
        guards=GuardSummary(), cost=CompileCost(compile_s=4.0, phases_s=phases, tree=TREE), cache=CacheSummary(),
        artifact_bytes=0, compilations=[compiled],
        graph_records=[Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=300)],
    )  # fmt: skip


def test_an_opened_module_shows_what_is_outside_and_leads_there(open_page):
    page = open_page(document(), fragment="#/compile?node=n25")
    ports = page.locator(".graph-box.outside text.name")
    expect(ports).to_have_text(["n19", "n30"])
    expect(page.locator(".graph-edge")).to_have_count(11)
    page.locator(".graph-box.outside").nth(1).click()
    expect(page.locator(".graph-details")).to_contain_text("Outside of the opened part.")
    page.locator(".graph-details").get_by_role("button", name="Go there").click()
    expect(ports).to_have_text(["n29", "n40"])
    expect(page.locator(".graph-box.chosen text.name")).to_have_text("relu")
    page.wait_for_url(re.compile("node=n30"))


def test_ports_are_reached_with_the_keyboard(open_page):
    page = open_page(document(), fragment="#/compile?node=n21")
    drawing = page.locator(".graph-svg")
    expect(page.locator(".graph-box.outside")).to_have_count(2)
    drawing.press("ArrowUp")
    drawing.press("ArrowUp")
    expect(page.locator(".graph-box.chosen.outside text.name")).to_have_text("n19")
    drawing.press("Enter")
    expect(page.locator(".graph-box.outside text.name")).to_have_text(["n9", "n20"])


def test_compile_time_is_nested_and_read_with_the_keyboard(open_page):
    page = open_page(document(), fragment="#/compile")
    steps = page.locator('[data-widget="steps"]')
    expect(steps.locator('figure[aria-label="Inside the compiler"]')).to_be_visible()
    canvas = steps.locator("canvas")
    canvas.press("ArrowDown")
    expect(steps.locator(".icicle-selected")).to_contain_text("0/0 forward model.py:9")
    canvas.press("ArrowDown")
    canvas.press("ArrowDown")
    expect(steps.locator(".icicle-selected")).to_contain_text(CANARY)
    expect(steps.locator(".icicle-line")).to_contain_text("3.00 s (75.0 %)")
    expect(steps.locator(".icicle-line")).to_contain_text("self time")
    page.wait_for_url(re.compile("step="))
    expect(page.locator("img[src=x]")).to_have_count(0)


@pytest.mark.exhaustive
def test_a_link_leads_to_a_step_and_leaves_the_graph_alone(open_page):
    page = open_page(
        document(), fragment="#/compile?graph=0&node=n3&step=0/0 forward model.py:9;entire_frame_compile"
    )
    expect(page.locator('[data-widget="steps"] .icicle-selected')).to_contain_text("entire_frame_compile")
    expect(page.locator(".graph-details")).to_contain_text("n3")


@pytest.mark.exhaustive
def test_the_roofline_names_its_ceilings_and_who_says_so(open_page, documents, tmp_path):
    path = tmp_path / "trace.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 9}
    path.write_text(json.dumps({"traceEvents": [event]}))
    point = RoofPoint(
        op="aten::mm", calls=2, time_ns=900, share=0.9, flop=100, flop_per_s=1e10, bytes_per_s=1e9, intensity=10.0,
        share_of_roof=0.5, arithmetic="float32", unit="matrix", bound="compute",
    )  # fmt: skip
    measured = {"source": f"measured on {CANARY}", "is_measured": True, "work": "matmul, best of 5 timings"}
    ceilings = [
        Ceiling(name="memory", rate=2e10, low=1.8e10, **measured),
        Ceiling(name="float32", rate=2e10, low=1.5e10, **measured),
        Ceiling(name="bfloat16", rate=4e10, source="a data sheet", is_measured=False),
    ]
    traced = report_rank(read_trace([path]).ranks[0])
    report = msgspec.structs.replace(traced, roofline=[point], ceilings=ceilings)
    page = open_page(changed(documents["steady"], trace=report), fragment="#/roofline", width=380)
    rows = page.locator(".roof-table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text(re.compile("memory.*20.0 GB/s.*≥ 18.0 GB/s.*measured on"))
    expect(rows.nth(1)).to_contain_text("float32")
    expect(page.locator(".drawing path.roof")).to_have_count(2)
    expect(page.locator(".drawing path.roof-band")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


@pytest.mark.parametrize(
    ("query", "widget"),
    [
        ("graph=0&node=n25", "graphs"),
        ("step=0/0 forward model.py:9;entire_frame_compile", "steps"),
    ],
)
def test_a_link_brings_the_part_that_it_names_into_view(open_page, query, widget):
    page = open_page(document(), fragment=f"#/compile?{query}")
    expect(page.locator(f'[data-widget="{widget}"] figure').first).to_be_in_viewport()
    if page.locator(".mounted:not(.elsewhere)").first.get_attribute("data-widget") != widget:
        page.wait_for_function("() => scrollY > 0")
    expect(page.locator("#link-notice")).to_have_count(0)


WRONG = (
    "graph=77", "node=bogus", "open=bogus", "open=999", "with=77", "colour=bogus", "step=bogus", "see=bogus",
    "see=recompiles",  # there is none here
)  # fmt: skip


@pytest.mark.exhaustive
def test_what_a_link_names_in_vain_is_said_in_view(open_page):
    page = open_page(document(), fragment=f"#/compile?{WRONG[0]}")
    for wrong in WRONG:
        page.evaluate("address => { location.hash = address }", f"#/compile?{wrong}")
        expect(page.locator("#link-notice")).to_contain_text(wrong)
        expect(page.locator("#link-notice")).to_be_in_viewport()


@pytest.mark.exhaustive
def test_every_colour_of_the_compilers_steps_is_in_the_legend(open_page):
    page = open_page(document(), fragment="#/compile")
    legend = page.locator('[data-widget="steps"] .icicle-legend')
    expect(legend).to_have_text(re.compile("compilation.*Dynamo tracing.*guards"))


@pytest.mark.exhaustive
def test_a_printed_graph_is_as_wide_as_the_paper_and_steps_stand_beside_the_bar(open_page):
    page = open_page(document(), fragment="#/compile", width=700)
    page.evaluate("document.body.classList.add('print-all')")
    page.emulate_media(media="print")
    expect(page.locator('figure:has(> figcaption:text("Inside the compiler")) .plot').first).to_be_visible()
    page.wait_for_function(
        """() => [...document.querySelectorAll('.picture img')].every(
            (one) => one.getBoundingClientRect().right <= innerWidth && one.height <= 860)"""
    )
