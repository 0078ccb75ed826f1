"""What comes out of the printer: the whole document in the colours of paper, nothing cut off, no chapter torn without need."""

from __future__ import annotations

import re

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

PAPER_PX = 688  # a page of A4 within its margins
CUT_OFF = """[...document.querySelectorAll("main :is(.scroll, pre, table, section, article, svg.y-axis text, .plot > .label)")]
  .filter((part) => part.getClientRects().length > 0 && part.closest(".widget") === null)
  .filter((part) => {
    const { left, right } = part.getBoundingClientRect();
    return left < -1 || right > innerWidth + 1 || (part instanceof HTMLElement && part.scrollWidth > part.clientWidth + 1);
  })
  .map((part) => part.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def case(rich):
    return rich("a/rather/long/folder/of_a_project/with_a_model/that_has_a_name.py")


@pytest.fixture
def printed(open_page, case):
    """The page on paper, read from the screen."""

    def opened(**options):
        page = open_page(*case, width=PAPER_PX, **options)
        page.emulate_media(media="print")
        page.evaluate("document.body.classList.add('print-all')")
        return page

    return opened


@pytest.mark.parametrize("locale", ["en-GB", pytest.param("zh-CN", marks=pytest.mark.exhaustive)])
def test_nothing_is_cut_off(printed, settled, locale):
    page = settled(printed(locale=locale))
    assert page.evaluate(CUT_OFF) == []


@pytest.mark.exhaustive
def test_without_a_script_nothing_is_cut_off_either(printed):
    assert printed(java_script_enabled=False).evaluate(CUT_OFF) == []


def test_tables_go_on_over_pages_and_their_rows_and_cards_do_not_break(printed):
    page = printed()
    for part in ("tbody tr", "thead", "article.finding > p", ".reading", ".card"):
        expect(page.locator(part).first).to_have_css("break-inside", "avoid")
    expect(page.locator(".scroll table").first).to_have_css("break-inside", "auto")


@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, id="light", marks=pytest.mark.exhaustive), pytest.param(True, id="dark")],
)
def test_the_verdict_is_dark_on_paper_and_colours_that_tell_something_are_printed(printed, dark):
    page = printed(dark=dark)
    verdict = page.locator("h1:not(.page-title)")
    expect(verdict).to_be_visible()
    expect(verdict).to_have_css("color", "rgb(27, 29, 33)")
    expect(page.locator("body")).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(page.locator("html")).to_have_css("print-color-adjust", "exact")


@pytest.mark.exhaustive
def test_a_chapter_that_was_in_view_is_printed_like_the_others(printed):
    page = printed(fragment="#/environment")
    for chapter in page.locator("main > section:has(> h2:not(.quiet)):not(.answer, .split, .card)").all():
        expect(chapter).to_have_css("border-top-style", "solid")


def test_a_page_prints_its_summary_and_all_of_it_on_request(open_page, case):
    page = open_page(*case)

    def pages() -> int:
        return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))

    assert pages() <= 4
    page.evaluate("window.print = () => { window.printed = document.body.className }")
    page.get_by_role("button", name="Keys and help").click()
    page.get_by_role("button", name="Print all pages").click()
    page.wait_for_function("window.printed !== undefined")
    assert "print-all" in page.evaluate("window.printed")
    assert pages() > 4


def test_the_file_has_no_more_pages_than_it_needs(open_page, case):
    """Of the same document, printed at half the size: what does not fit a page must not leave it empty."""
    page = open_page(*case)
    page.evaluate("document.body.classList.add('print-all')")

    def pages(scale: float) -> int:
        return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", scale=scale)))

    assert pages(1) <= 5 * pages(0.5)


@pytest.mark.exhaustive
def test_a_drawing_stays_with_its_heading(printed):
    page = printed()
    heading, facts, figure = (
        page.locator(f"section[aria-labelledby=tree-0] > {part}") for part in ("h2", ".facts", "figure")
    )
    expect(facts.locator("+ figure")).to_have_count(1)
    for part in (heading, facts):
        expect(part).to_have_css("break-after", "avoid")
    for part in (facts, figure):
        expect(part).to_have_css("break-inside", "avoid")


@pytest.mark.exhaustive
def test_the_lines_of_a_finding_are_printed(printed):
    page = printed()
    lines = page.locator("#finding-1 .finding-source, article.finding .finding-source").first
    expect(lines).to_be_visible()
    expect(lines).to_have_css("white-space", "pre-wrap")
    expect(lines.locator(".marked")).to_have_count(1)
