"""The frame of a page: its pages, its keys, its findings, its language and theme."""

from __future__ import annotations

import re

import pytest
from representative import every

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

WIDE, NARROW = 1280, 390


@pytest.fixture(scope="module")
def case(rich):
    return rich()


def shows(page, name: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-shown", name)


def titles(page):
    return page.locator("nav.pages a")


def turn(page, address: str) -> None:
    """To a page of the report, once it is in view."""
    page.evaluate("address => { location.hash = address }", address)
    shows(page, address.removeprefix("#/"))


def addresses(page) -> list[str]:
    return [link.get_attribute("href") for link in page.locator("nav.pages a").all()]


def has_ground(page, colour: str) -> None:
    expect(page.locator("body")).to_have_css("background-color", colour)


def test_pages_stand_in_a_fixed_order(open_page, case):
    page = open_page(*case)
    names = [
        "Overview", "Findings", "Timeline", "Flame graph", "Operators", "Roofline", "Idle & sync", "Memory", "Compile",
        "Data loading", "Measurement", "Environment", "History",
    ]  # fmt: skip
    expect(titles(page)).to_have_text(names)
    expect(page.locator("nav.pages .badge")).to_have_text("5")


def test_first_screen_tells_verdict_parts_findings_trust_and_machine(open_page, case):
    page = open_page(*case)
    for part in ("h1:not(.page-title)", "#split", "#top", "#quality", "#machine", ".top li >> nth=2"):
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert box["y"] + min(box["height"], 40) < 800, part
    expect(page.locator("#latency")).to_be_hidden()


def test_from_the_overview_to_the_evidence_in_one_click(open_page, case):
    page = open_page(*case)
    page.get_by_role("link", name="Show in the loader pipeline").first.click()
    shows(page, "data")
    expect(page).to_have_title(re.compile("^Data loading · "))
    expect(page.locator("h1.page-title")).to_be_focused()
    expect(page.locator("h1.page-title")).to_have_text("Data loading")
    expect(page.locator('nav.pages [aria-current="page"]')).to_have_text("Data loading")
    page.go_back()
    shows(page, "overview")
    expect(page.locator("h1:not(.page-title)")).to_be_focused()


@pytest.mark.exhaustive
def test_ordinary_anchors_lead_to_their_page(open_page, case):
    page = open_page(*case, fragment="#environment")
    shows(page, "environment")
    page.evaluate("location.hash = '#PYR101-item-in-hot-loop'")
    shows(page, "findings")
    page.locator("#finding-5 .finding-tools").wait_for(state="attached")
    page.wait_for_function(
        "name => { const { y } = document.getElementById(name).getBoundingClientRect(); return y >= 0 && y < 120 }",
        arg="PYR101-item-in-hot-loop",
    )
    page.evaluate("location.hash = '#finding-1'")
    expect(page.locator("#finding-1")).to_be_focused()


@pytest.mark.parametrize("fragment", every(5, ["#/%E0%A4%A", "#/nowhere", "#nothing", "#%E0%A4%A", "#/"]))
def test_a_damaged_address_shows_the_overview(open_page, perception, fragment):
    page = open_page(perception, fragment=fragment)
    shows(page, "overview")
    expect(page).to_have_url(
        re.compile(re.escape("#/overview" if fragment.startswith("#/") else fragment) + "$")
    )


def test_keys_turn_pages_search_and_help(open_page, settled, case):
    page = open_page(*case)
    page.keyboard.press("]")
    shows(page, "findings")
    settled(page).keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("[break]")
    expect(page.get_by_role("searchbox")).to_have_value("[break]")
    shows(settled(page), "findings")
    page.locator("h1").first.click()
    page.keyboard.press("[")
    shows(page, "overview")
    page.keyboard.press("[")
    shows(settled(page), "overview")
    help_ = page.get_by_role("dialog")
    page.keyboard.press("?")
    help_.wait_for(state="visible")
    page.keyboard.press("Escape")
    help_.wait_for(state="hidden")
    page.get_by_role("button", name="Keys and help").click()
    page.get_by_role("button", name="Close").click()
    help_.wait_for(state="hidden")
    page.keyboard.press("?")
    help_.wait_for(state="visible")


def test_findings_are_filtered_and_copied(open_page, case):
    page = open_page(*case, fragment="#/findings", permissions=["clipboard-read", "clipboard-write"])
    cards = page.locator("article.finding[id^=finding]:visible")
    expect(cards).to_have_count(5)
    page.get_by_role("button", name="data 2").click()
    expect(cards).to_have_count(2)
    page.get_by_role("searchbox").fill("no-WORKERS")
    expect(cards).to_have_count(1)
    expect(page).to_have_url(re.compile("family=data"))
    page.get_by_role("button", name="Copy the rewrite").and_(page.locator(":visible")).click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('DataLoader'))")
    page.get_by_role("button", name="Copy as Markdown").and_(page.locator(":visible")).click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('### PYR302'))")


@pytest.mark.exhaustive
def test_a_link_to_a_card_overrides_the_filter(open_page, case):
    page = open_page(*case, fragment="#/findings?family=data")
    card = page.locator("article.finding[id^=finding]", has_text="PYR101").first
    card.wait_for(state="hidden")
    page.evaluate("location.hash = '#PYR101-item-in-hot-loop'")
    card.wait_for(state="visible")


def test_findings_show_their_source_and_their_rule(open_page, case):
    page = open_page(*case, fragment="#/findings")
    expect(page.locator("#finding-1 .finding-source .marked")).to_have_text("12x = loss.item()")
    page.locator("#finding-1 summary").click()
    headings = page.locator("#finding-1 .explained h4")
    for heading, text in zip(
        (headings.nth(0), headings.nth(1)), ("What it does", "Why it costs"), strict=True
    ):
        expect(heading).to_have_text(text)
        expect(heading).to_be_visible()


def test_every_page_fits_its_window(open_page, settled, case):
    for width in (NARROW, WIDE, 1600):
        page = open_page(*case, width=width)
        for address in addresses(page):
            turn(page, address)
            overflow = settled(page).evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0, (width, address)


def test_without_javascript_it_is_one_document(open_page, case):
    page = open_page(*case, java_script_enabled=False)
    for part in ("#split", "#top", "#findings", "#latency", "#environment", "#memory"):
        expect(page.locator(part)).to_be_visible()
    expect(page.locator(".controls")).to_be_hidden()
    page.get_by_role("link", name="Show in the loader pipeline").first.click()
    expect(page).to_have_url(re.compile("#/data$"))
    expect(page.locator("nav.pages a >> text=History")).to_be_hidden()  # it is drawn by the script alone


def test_printing_shows_every_page_where_all_are_asked_for(open_page, case):
    page = open_page(*case, fragment="#/memory", dark=True)
    page.evaluate("document.body.classList.add('print-all')")
    page.emulate_media(media="print")
    for part in ("h1:not(.page-title)", "#split", "#findings", "#latency", "#environment"):
        expect(page.locator(part)).to_be_visible()
    expect(page.locator("nav.pages")).to_be_hidden()
    expect(page.locator("body")).to_have_css("color", "rgb(27, 29, 33)")
    assert len(page.pdf(format="A4")) > 10_000


@pytest.mark.exhaustive
def test_printing_after_a_visit_shows_the_document_and_no_drawing_of_the_script(open_page, settled, case):
    page = open_page(*case, dark=True)
    for name in ("timeline", "flame", "memory"):
        turn(page, f"#/{name}")
        settled(page).locator(".widget.mounted:visible").first.wait_for()
    page.evaluate("document.body.classList.add('print-all')")
    page.emulate_media(media="print")
    page.wait_for_function("document.querySelector('h1:not(.page-title)').getBoundingClientRect().y < 160")
    of_the_script = ".widget:visible, .tools:visible, nav.pages:visible, button:not(.sort):visible"
    expect(page.locator(of_the_script)).to_have_count(0)
    hidden = page.evaluate(
        "[...document.querySelectorAll('main :is([data-page], [data-static]):not(.widget)')]"
        ".filter(part => part.childElementCount > 0 && part.getClientRects().length == 0).map(part => part.outerHTML.slice(0, 90))"
    )
    assert hidden == []


def test_language_is_switched_and_kept(open_page, case):
    page = open_page(*case)
    english = page.locator("#split").text_content()
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#split")).to_have_text("一步的时间去向")
    for number, title in enumerate(["概览", "发现", "时间线"]):
        expect(titles(page).nth(number)).to_have_text(title)
    expect(page.locator(".top .do").first).to_have_text("Load with num_workers=2.")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("#split")).to_have_text(english)
    for number, title in enumerate(["Overview", "Findings", "Timeline"]):
        expect(titles(page).nth(number)).to_have_text(title)


@pytest.mark.exhaustive
def test_language_follows_the_browser(open_page, case):
    page = open_page(*case, locale="zh-CN", fragment="#/findings")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator(".page-title")).to_have_text("发现")
    expect(page.get_by_role("searchbox")).to_have_attribute("placeholder", "搜索发现")


def test_theme_is_chosen_and_kept(open_page, perception):
    page = open_page(perception, dark=True)
    dark, light = "rgb(19, 21, 24)", "rgb(252, 251, 249)"
    has_ground(page, dark)
    page.get_by_role("button", name="Theme: as the system").click()
    has_ground(page, light)
    page.reload()
    has_ground(page, light)
    page.get_by_role("button", name="Theme: light").click()
    has_ground(page, dark)
    page.emulate_media(color_scheme="light")
    has_ground(page, dark)
    page.get_by_role("button", name="Theme: dark").click()
    has_ground(page, light)


@pytest.mark.exhaustive
def test_theme_holds_before_the_document_is_painted(open_page, perception):
    """The choice stands on the root while the body is still being read."""
    page = open_page(perception)
    page.evaluate("localStorage.setItem('pyrometer.theme', 'dark')")
    page.add_init_script(
        "new MutationObserver((_, seen) => { if (document.body) { window.early = document.documentElement.dataset.theme;"
        "seen.disconnect() } }).observe(document, {childList: true, subtree: true})"
    )
    page.reload()
    assert page.evaluate("window.early") == "dark"


def test_every_element_has_an_id_of_its_own(open_page, case):
    page = open_page(*case)
    again = page.evaluate(
        "[...document.querySelectorAll('[id]')].map(one => one.id).filter((id, i, all) => all.indexOf(id) != i)"
    )
    assert again == []
    lost = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby]')].map(one => one.getAttribute('aria-labelledby'))"
        ".filter(id => document.getElementById(id) == null)"
    )
    assert lost == []
