"""Links as the documentation writes them open what they say, and what a page does not know is named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from document_fixtures import document_of

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.view.tables import tables_of
from pyrometer.trace.view.view import view_trace

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

ROOT = Path(__file__).parents[3]
DOCUMENTED = re.findall(r"^#/\S+$", (ROOT / "docs/report.md").read_text(encoding="utf-8"), re.MULTILINE)
NOTICE = "#link-notice"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[TraceDocument, Attachments]:
    """Eight operators, each with a kernel that is named after a multiplication; the i-th takes i times as long."""
    events: list[dict[str, Any]] = []
    for i in range(1, 9):
        at = 7e6 + 1000.0 * i
        host, device = {"pid": 1, "tid": 1}, {"pid": 0, "tid": 7}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::op{i}", **host, "ts": at, "dur": 100 * i, "args": {}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **host, "ts": at + 9, "dur": 5, "args": {"correlation": i}},
            {"ph": "X", "cat": "kernel", "name": f"gemm{i}", **device, "ts": at + 20, "dur": 10 * i, "args": {"correlation": i, "device": 0, "stream": 7}},
        ]  # fmt: skip
    path = tmp_path_factory.mktemp("traces") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    rank = read_trace(str(path)).ranks[0]
    attachments = Attachments(traces=[view_trace(rank)], tables=[tables_of(rank)])
    return document_of(TraceDocument, target="trace.json", ranks=[report_rank(rank)]), attachments


@pytest.fixture(scope="module")
def case(rich):
    return rich()


def rows(page: Any) -> Any:
    return page.locator(".full-table").first.locator("tbody tr:not(.gap)")


def test_the_documentation_has_links():
    assert len(DOCUMENTED) == 2


@pytest.mark.parametrize("link", DOCUMENTED)
def test_a_documented_link_to_a_table_works(open_page, traced, link):
    page = open_page(*traced, fragment=link)
    expect(rows(page)).not_to_have_count(0)
    expect(rows(page)).not_to_have_count(8)
    expect(page.locator("th[aria-sort=descending]").first).to_be_visible()
    expect(page.locator(NOTICE)).to_have_count(0)


def test_a_click_stands_in_the_address_at_once(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    heading = page.get_by_role("columnheader", name="Calls").get_by_role("button")
    heading.wait_for()
    assert heading.evaluate("button => (button.click(), location.hash)") == "#/operators?sort=-calls"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("#PYR999-nothing", "#PYR999-nothing"),
        ("#/findings?text=loader&colour=red", "colour=red"),
        ("#/memory?from=9&to=3", "from=9 · to=3"),
        ("#/data?foo=1", "foo=1"),
        ("#/overview?a=1&b=2", "a=1 · b=2"),
        ("#/flame?node=unknown", "node=unknown"),
        ("#/compile?step=unknown", "step=unknown"),
        ("#/idle?sort=cause", "sort=cause"),
    ],
)
def test_what_no_part_of_a_page_knows_is_named(open_page, case, address, told):
    page = open_page(*case, fragment=address)
    expect(page.locator(NOTICE)).to_have_text(re.compile(": " + re.escape(told) + "$"))


def test_a_link_filters_the_findings_by_their_text(open_page, case):
    page = open_page(*case, fragment="#/findings?text=nothing-says-this")
    expect(page.get_by_role("searchbox").first).to_have_value("nothing-says-this")
    expect(page.locator("article.finding:visible")).to_have_count(0)
    expect(page.locator(NOTICE)).to_have_count(0)
