"""Links as the documentation writes them open what they say, and what a page does not know is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from representative import every

from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument

from .conftest import OperatorsTraced

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

ROOT = Path(__file__).parents[3]
DOCUMENTED = re.findall(r"^#/\S+$", (ROOT / "docs/report.md").read_text(encoding="utf-8"), re.MULTILINE)
NOTICE = "#link-notice"


@pytest.fixture(scope="module")
def traced(operators_traced: OperatorsTraced) -> tuple[TraceDocument, Attachments]:
    """Each operator's kernel is named after a multiplication; the i-th takes i times as long."""
    return operators_traced([f"aten::op{i}" for i in range(1, 9)], lambda i: 100 * i)


@pytest.fixture(scope="module")
def case(rich):
    return rich()


def rows(page: Any) -> Any:
    return page.locator(".full-table").first.locator("tbody tr:not(.gap)")


def test_the_documentation_has_links():
    assert len(DOCUMENTED) == 2


@pytest.mark.parametrize("link", every(2, DOCUMENTED))
def test_a_documented_link_to_a_table_works(open_page, traced, link):
    page = open_page(*traced, fragment=link)
    expect(rows(page)).not_to_have_count(0)
    expect(rows(page)).not_to_have_count(8)
    expect(page.locator("th[aria-sort=descending]").first).to_be_visible()
    expect(page.locator(NOTICE)).to_have_count(0)


@pytest.mark.exhaustive
def test_a_click_stands_in_the_address_at_once(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    heading = page.get_by_role("columnheader", name="Calls").get_by_role("button")
    heading.wait_for()
    assert heading.evaluate("button => (button.click(), location.hash)") == "#/operators?sort=-calls"


UNKNOWN = {
    "#PYR999-nothing": "#PYR999-nothing",
    "#/findings?text=loader&colour=red": "colour=red",
    "#/memory?from=9&to=3": "from=9 · to=3",
    "#/data?foo=1": "foo=1",
    "#/overview?a=1&b=2": "a=1 · b=2",
    "#/flame?node=unknown": "node=unknown",
    "#/compile?step=unknown": "step=unknown",
    "#/idle?sort=cause": "sort=cause",
}


@pytest.mark.exhaustive
def test_what_no_part_of_a_page_knows_is_named(open_page, case):
    page = open_page(*case, fragment=next(iter(UNKNOWN)))
    for address, told in UNKNOWN.items():
        page.evaluate("address => { location.hash = address }", address)
        expect(page.locator(NOTICE)).to_have_text(re.compile(": " + re.escape(told) + "$"))


def test_a_link_filters_the_findings_by_their_text(open_page, case):
    page = open_page(*case, fragment="#/findings?text=nothing-says-this")
    expect(page.get_by_role("searchbox").first).to_have_value("nothing-says-this")
    expect(page.locator("article.finding:visible")).to_have_count(0)
    expect(page.locator(NOTICE)).to_have_count(0)
