"""Tables in a browser: sorted, filtered, selected, copied and scrolled, on the pages of operators and idle time."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from document_fixtures import document_of

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.view.table_record import OperatorColumns, TraceTables
from pyrometer.trace.view.tables import tables_of
from pyrometer.trace.view.view import view_trace

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

HOSTILE = "</script><img src=x onerror=alert(1)>"


def event(
    cat: str, name: str, ts: float, dur: float, *, stream: int | None = None, **args: Any
) -> dict[str, Any]:
    place = {"pid": 1, "tid": 1} if stream is None else {"pid": 0, "tid": stream}
    args |= {} if stream is None else {"device": 0, "stream": stream}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": 7e6 + ts, "dur": dur, "args": args}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[TraceDocument, Attachments]:
    """Thirty operators, the i-th 10·i µs on the device, with gaps between; one of them waits."""
    events = []
    for i in range(1, 31):
        at = 1000.0 * i
        name = HOSTILE if i == 7 else "=SUM(A1)" if i == 8 else f"aten::op{i}"
        events += [
            event("python_function", f"net.py({i}): layer{i}", at, 400),
            event("cpu_op", name, at + 1, 60),
            event("cuda_runtime", "cudaLaunchKernel", at + 10, 5, correlation=i),
            event("kernel", f"gemm{i}", at + 20, 10 * i, stream=7, correlation=i),
        ]
    events += [
        event("cpu_op", "aten::item", 30_070, 330),
        event("cuda_runtime", "cudaStreamSynchronize", 30_080, 300),
    ]
    path = tmp_path_factory.mktemp("traces") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    rank = read_trace(str(path)).ranks[0]
    attachments = Attachments(traces=[view_trace(rank)], tables=[tables_of(rank)])
    return document_of(TraceDocument, target="trace.json", ranks=[report_rank(rank)]), attachments


def firsts(page: Any) -> Any:
    """The first cells of the rows that are in the page."""
    return page.locator(".full-table").first.locator("tbody tr:not(.gap) td:first-child")


def test_sorts_by_headings_and_with_shift_by_several(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    expect(firsts(page).first).to_have_text("aten::op30")
    heading = page.get_by_role("columnheader", name="Device self")
    expect(heading).to_have_attribute("aria-sort", "descending")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(firsts(page).first).to_have_text("aten::item")
    page.get_by_role("button", name="Calls").click(modifiers=["Shift"])
    expect(page.get_by_role("columnheader", name="Calls")).to_have_attribute("aria-sort", "descending")
    expect(heading).to_have_attribute("aria-sort", "ascending")


def test_filters_words_and_quantities(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    box = page.get_by_role("searchbox").first
    box.fill("op1 -op11")
    expect(page.locator(".table-tools .number").first).to_have_text("10 of 31 rows")
    page.get_by_role("button", name="Filter columns").first.click()
    page.get_by_label("Filter: Device self").fill(">= 180us")
    expect(firsts(page)).to_have_text(["aten::op19", "aten::op18"])
    page.get_by_label("Filter: Device self").fill("often")
    expect(page.get_by_label("Filter: Device self")).to_have_attribute("aria-invalid", "true")
    box.fill("nowhere")
    expect(page.get_by_text("No row fits the filter.")).to_be_visible()


def test_selects_by_keyboard_and_links_to_other_pages(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    table = page.get_by_role("grid").first
    for key, place in (("End", "32"), ("Home", "2"), ("ArrowDown", "3")):
        table.press(key)
        expect(table.locator("tr.active")).to_have_attribute("aria-rowindex", place)
    table.press("Enter")
    row = page.locator("tr[aria-selected=true]")
    expect(row).to_have_attribute("aria-rowindex", "3")
    expect(table).to_have_attribute("aria-activedescendant", row.get_attribute("id"))
    link = page.get_by_role("link", name="Show in the timeline")
    expect(link).to_have_attribute("href", "#/timeline?find=aten::op29&rank=0")
    page.get_by_role("link", name="Show in the flame graph").click()
    expect(page).to_have_url(re.compile(r"#/flame\?find=aten::op29&rank=0$"))


def test_tabs_and_search_stand_in_the_address(open_page, traced):
    page = open_page(*traced, fragment="#/operators?tab=kernels&find=gemm2")
    chosen = page.get_by_role("tab", selected=True)
    expect(chosen).to_have_text("Kernels 30")
    expect(firsts(page).first).to_have_text("gemm29")
    chosen.press("ArrowRight")
    expect(chosen).to_have_text("Functions 30")
    expect(page).to_have_url(re.compile("tab=lines"))


@pytest.mark.exhaustive
def test_copies_what_is_shown(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    page.evaluate(
        "() => Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"
    )
    page.get_by_role("searchbox").first.fill("=SUM")
    expect(firsts(page)).to_have_text(["=SUM(A1)"])
    page.locator(".table-menu").nth(1).locator("summary").click()
    page.get_by_role("button", name="Copy as CSV").first.click()
    page.wait_for_function("window.copied")
    rows = list(csv.reader(io.StringIO(page.evaluate("window.copied"))))
    assert rows[0][:2] == ["Operator", "Device self (ns)"]
    assert rows[1][:2] == ["'=SUM(A1)", "80000"]
    assert len(rows) == 2
    page.get_by_role("button", name="Copy as Markdown").first.click()
    page.wait_for_function("window.copied.split('\\n')[2]?.startsWith('| `=SUM(A1)` | 80.0 µs |')")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save CSV").click()
    assert saved.value.suggested_filename == "Operators.csv"
    assert Path(saved.value.path()).read_text(encoding="utf-8-sig").startswith("Operator,")


def test_hostile_names_stay_text(open_page, traced):
    page = open_page(*traced, fragment="#/operators?find=onerror")
    expect(firsts(page)).to_have_text([HOSTILE])
    expect(page.locator("main img")).to_have_count(0)


@pytest.mark.exhaustive
def test_gaps_lead_to_their_place_in_the_timeline(open_page, traced):
    page = open_page(*traced, fragment="#/idle")
    expect(page.get_by_text("Why the device was idle")).to_be_visible()
    expect(page.locator("section#idle, [aria-labelledby=gaps-0]")).to_be_hidden()  # told by the widget
    page.locator(".idle-parts button").first.click()
    expect(page.locator(".idle-parts button").first).to_have_attribute("aria-pressed", "true")
    page.locator(".full-table").first.locator("tbody tr:not(.gap)").first.click()
    link = page.get_by_role("link", name="Show in the timeline")
    expect(link).to_have_attribute("href", re.compile(r"^#/timeline\?from=.*rank=0"))


@pytest.mark.exhaustive
def test_fits_a_narrow_window(open_page, traced):
    page = open_page(*traced, fragment="#/operators", width=380, dark=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    first, all_of_it = page.locator(".table-scroll th").first, page.locator(".table-scroll").first
    assert first.bounding_box()["width"] < all_of_it.bounding_box()["width"] / 2


@pytest.mark.exhaustive
def test_static_tables_can_be_sorted_and_keep_their_text(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    page.evaluate("for (const part of document.querySelectorAll('[data-static]')) delete part.dataset.static")
    table = (
        page.locator("table[data-enhanced]:visible").filter(has=page.locator("th", has_text="device")).first
    )
    before = table.locator("tbody tr").all_text_contents()
    head = table.locator("thead").text_content()
    names = table.locator("tbody tr > :first-child")
    ordered = sorted(names.all_text_contents(), key=str.lower)
    heading = table.locator("thead th").first
    for order, said in (("ascending", ordered), ("descending", ordered[::-1])):
        heading.locator("button").click()
        expect(heading).to_have_attribute("aria-sort", order)
        assert [name.lower() for name in names.all_text_contents()] == [name.lower() for name in said]
        expect(table.locator("thead")).to_have_text(head)
    heading.locator("button").click()
    expect(heading).not_to_have_attribute("aria-sort", re.compile("ending"))
    expect(table.locator("tbody tr")).to_have_text(before)


def test_fifty_thousand_rows_scroll_as_smoothly_as_five_hundred(open_page, traced):
    """Few rows are in the page at a time, and a frame takes no more work for all that are not."""

    def busy_ms(num_rows: int) -> float:
        page = open_page(traced[0], Attachments(tables=[many(num_rows)]), fragment="#/operators")
        rows = page.locator(".table-scroll").first.locator("tbody tr")
        rows.first.wait_for()
        page.evaluate(SCROLL)
        spent = measured(page, lambda: page.evaluate(SCROLL))
        expect(rows.last).to_have_attribute("aria-rowindex", str(num_rows + 1))
        assert rows.count() < 60
        return spent

    assert busy_ms(50_000) < 3 * busy_ms(500)


def many(num_rows: int) -> TraceTables:
    count = list(range(num_rows))
    columns = OperatorColumns(
        num_rows=num_rows, num_listed=num_rows, name=[f"aten::op{i}" for i in count], calls=count,
        host_self_ns=[i * 37 % 1_000_003 for i in count], device_self_ns=count, host_share=[i / num_rows for i in count],
    )  # fmt: skip
    return TraceTables(rank=0, path="", span_ns=1, has_device=True, operators=columns)


def measured(page: Any, act: Callable[[], Any]) -> float:
    """What script, style and layout take of a processor during something, in ms: other programs do not count."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        found = {
            metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]
        }
        return 1000 * sum(found[f"{part}Duration"] for part in ("Script", "Layout", "RecalcStyle"))

    before = spent()
    act()
    return spent() - before


SCROLL = """async () => {
  const box = document.querySelector(".table-scroll");
  const frame = () => new Promise(requestAnimationFrame);
  for (let i = 0; i < 60; i++) {
    box.scrollTop = i * 97;
    await frame();
  }
  box.scrollTop = box.scrollHeight;
  await frame(); await frame(); await frame();
}"""
