"""Graphs, breaks and recompilations in a browser: opened, searched, compared, with the text of the program as text."""

from __future__ import annotations

import re

import pytest
from document_fixtures import document_of
from representative import every

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.costs.record import CacheSummary, Compilation, CompileCost
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.recompiles.record import ChangedInput, GuardSummary, Recompile, RecompileCause
from pyrometer.place import Place
from pyrometer.report.attachments import Attachments, SourceText
from pyrometer.report.documents import CompileDocument

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

CANARY = "</script><img src=x onerror=alert(1)>"


def graph(num_ops: int, stage: str = "dynamo", per_module: int = 10) -> Graph:
    nodes = [GraphNode(name="x", op="input", role="input", dtype="float32", shape=["8"])]
    before = "x"
    for place in range(num_ops):
        nodes.append(
            GraphNode(
                name=f"n{place}", op="call", target=("aten.mm.default", "aten.relu.default", "aten.add.Tensor")[place % 3],
                inputs=[before, *([f"n{place - 7}"] if place % 9 == 8 else [])], dtype="float32", shape=["8"], num_bytes=32 * (place + 1),
                module=f"layers.{place // per_module}", file="model.py", line=10 + place % 5, source=f"x = f(x) {CANARY}",
            )
        )  # fmt: skip
        before = f"n{place}"
    nodes.append(GraphNode(name="output", op="output", inputs=[before]))
    return Graph(compile_id="0/0", stage=stage, nodes=nodes, num_ops=num_ops)


def document(*graphs: Graph) -> CompileDocument:
    rewrite = Advice(
        slug="choose-with-torch-where",
        title="choose with torch.where",
        why="Both are cheap.",
        replaces="if x:",
        rewrite="torch.where(x)",
        fix_class="exact",
    )
    graph_break = Break(
        id="gb0170", reason=f"Data-dependent branching {CANARY}", file="model.py", line=12, count=2, source="if x:", advice=[rewrite],
        user_stack=[Place(file="run.py", line=1, function="main"), Place(file="model.py", line=12, function="f")],
    )  # fmt: skip
    recompiles = [
        Recompile(
            compile_id=f"0/{number}", function="f", file="model.py", line=10, compile_s=0.5,
            causes=[RecompileCause(entry="0/0", guard=f"len(kept) == {number}", all_failing=[f"len(kept) == {number}"], kind="length")],
            changed_inputs=[ChangedInput(source="k", name="length of kept", kind="length", before=[str(number)], after=str(number + 1))],
        )
        for number in (1, 2)
    ]  # fmt: skip
    phases = {"Dynamo tracing": 1.0, "code generation": 3.0}
    compiled = Compilation(
        compile_id="0/0",
        function="f",
        file="model.py",
        line=10,
        outcome="compiled",
        total_s=4.0,
        phases_s=phases,
    )
    return document_of(CompileDocument, target="model.py:work", graphs=1, frames=1, skipped_frames=0, breaks=[graph_break], recompiles=recompiles, limit_reached=False,
        guards=GuardSummary(), cost=CompileCost(compile_s=4.0, phases_s=phases), cache=CacheSummary(), artifact_bytes=0,
        compilations=[compiled], graph_records=list(graphs),
    )  # fmt: skip


SOURCES = Attachments(sources=[SourceText(file="model.py", first_line=10, lines=["def f(x):", "    x = g(x)", f"    if x:  # {CANARY}", "        x = x * 2", "    return x"])])  # fmt: skip


def test_the_source_shows_the_break_with_its_advice(open_page):
    page = open_page(document(graph(12)), SOURCES, fragment="#/compile")
    row = page.locator(".source-row.note-break")
    expect(row).to_have_attribute("data-line", "12")
    expect(row).to_contain_text("2×")
    expect(row.locator("pre.after")).to_contain_text("torch.where(x)")
    expect(page.locator(".source-row")).to_have_count(5)
    expect(page.locator("img[src=x]")).to_have_count(0)
    expect(page.locator('section[data-static][aria-labelledby="breaks"]')).to_be_hidden()


@pytest.mark.parametrize("wrong", every(2, ["line=99999", "line=0:99999"]))
def test_a_line_that_is_not_there_is_said_to_be_left_out(open_page, wrong):
    page = open_page(document(graph(12)), SOURCES, fragment=f"#/compile?{wrong}")
    expect(page.locator("#link-notice")).to_contain_text(wrong)


def test_a_guard_that_failed_is_one_row_of_the_matrix(open_page):
    page = open_page(document(graph(12)), SOURCES, fragment="#/compile?see=recompiles")
    cells = page.locator(".guard-matrix tbody td.first")
    expect(cells).to_have_count(2)
    expect(page.locator(".guard-matrix tbody th")).to_contain_text("len(kept) == …")
    cells.nth(1).locator("button").click()
    expect(page.locator(".recompiled [role=status]")).to_contain_text("len(kept) == 2")
    expect(page.locator(".phase-track rect")).to_have_count(4)


def test_a_module_opens_arranged_by_a_worker_and_the_trail_leads_back(open_page):
    page = open_page(document(graph(400)), fragment="#/compile")
    boxes = page.locator(".graph-svg g[data-box]")
    boxes.first.wait_for()
    box = page.locator(".graph-svg g[data-box]:has(rect.behind)").first
    name = (box.locator("text.name").text_content() or "").strip()
    box.dblclick()
    page.locator(f'.graph-trail button[aria-current]:has-text("{name}")').wait_for()
    expect(page.locator(".graph-svg:not(:has(rect.behind)) g[data-box]:not(.outside)")).to_have_count(10)
    expect(page.locator(".graph-edge").nth(8)).to_be_attached()
    expect(page.get_by_text("Arranged plainly")).to_have_count(0)
    page.locator(".graph-trail button", has_text="Whole graph").click()
    page.locator(".graph-svg rect.behind").first.wait_for()


def test_search_leads_to_an_operation_within_a_module_and_the_address_keeps_it(open_page, settled):
    page = open_page(document(graph(400)), fragment="#/compile")
    field = page.locator(".graph-pane input[type=search]")
    page.locator(".graph-svg").press("/")
    expect(field).to_be_focused()
    page.keyboard.type("n333")
    expect(page.locator(".graph-pane [role=status]")).to_contain_text("1 found")
    field.press("Enter")
    page.locator(".graph-box.chosen").wait_for()
    expect(page.locator(".graph-details")).to_contain_text("aten.mm.default")
    expect(page.locator(".graph-details")).to_contain_text(CANARY)
    page.wait_for_url(re.compile("node=n333"))
    again = page.url
    page.goto("about:blank")
    page.goto(again)
    page.locator(".graph-box.chosen").wait_for()
    settled(page).locator(".graph-svg").press("Escape")
    expect(page.locator(".graph-details")).to_have_count(0)


@pytest.mark.exhaustive
def test_two_stages_side_by_side_follow_each_other(open_page):
    page = open_page(document(graph(12), graph(12, "forward")), fragment="#/compile", width=1500)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".graph-pane").nth(1).locator("g[data-box]").first.wait_for()
    page.locator(".graph-pane").nth(0).locator("g[data-box]").nth(4).click()
    page.locator(".graph-pane").nth(1).locator(".graph-box.twin").wait_for()
    expect(page.locator(".graph-sides > [role=status]")).to_contain_text("the same name")


@pytest.mark.parametrize("colour", every(4, ["dtype", "bytes", "group", "marks"]))
def test_every_way_to_colour_has_a_legend(open_page, colour):
    page = open_page(document(graph(12)), fragment=f"#/compile?colour={colour}", dark=True)
    page.locator(".graph-legend li").first.wait_for()
    if colour == "marks":
        expect(page.locator(".graph-svg .flag").first).to_be_attached()


@pytest.mark.exhaustive
def test_a_telephone_has_nothing_to_scroll_sideways(open_page):
    page = open_page(document(graph(60)), SOURCES, fragment="#/compile", width=380)
    page.locator(".graph-svg g[data-box]").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_a_graph_of_2000_operations_opens_and_draws_only_what_is_in_view(open_page, settled):
    page = open_page(document(graph(2000, per_module=20)), fragment="#/compile?open=-1")
    page.locator(".graph-svg g[data-box]").first.wait_for()
    assert 0 < settled(page).locator(".graph-svg g[data-box]").count() < 200
    for _ in range(5):
        page.locator(".graph-svg").press("s")
    assert 0 < settled(page).locator(".graph-svg g[data-box]").count() < 200
