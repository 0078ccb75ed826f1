"""The frame of a page: its pages, its keys, its findings, its language and theme."""

from __future__ import annotations

import pytest

WIDE, NARROW = 1280, 390


@pytest.fixture(scope="module")
def case(rich):
    return rich()


def shown(page) -> str:
    return page.evaluate("document.body.dataset.shown")


def titles(page) -> list[str]:
    return page.locator("nav.pages a").all_inner_texts()


def test_pages_stand_in_a_fixed_order(open_page, case):
    page = open_page(*case)
    assert titles(page) == [
        "Overview", "Findings", "Timeline", "Flame graph", "Operators", "Roofline", "Idle & sync", "Memory", "Compile",
        "Data loading", "Measurement", "Environment", "History",
    ]  # fmt: skip
    assert page.locator("nav.pages .badge").inner_text() == "5"


def test_first_screen_tells_verdict_parts_findings_trust_and_machine(open_page, case):
    page = open_page(*case)
    for part in ("h1:not(.page-title)", "#split", "#top", "#quality", "#machine", ".top li >> nth=2"):
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert box["y"] + min(box["height"], 40) < 800, part
    assert not page.locator("#latency").is_visible()


def test_from_the_overview_to_the_evidence_in_one_click(open_page, case):
    page = open_page(*case)
    page.get_by_role("link", name="Show in the loader pipeline").first.click()
    assert shown(page) == "data"
    assert page.title().startswith("Data loading · ")
    assert page.evaluate("document.activeElement.textContent") == "Data loading"
    assert page.locator('nav.pages [aria-current="page"]').inner_text() == "Data loading"
    page.go_back()
    assert shown(page) == "overview"
    assert page.evaluate("document.activeElement.tagName") == "H1"


def test_ordinary_anchors_lead_to_their_page(open_page, case):
    page = open_page(*case, fragment="#environment")
    assert shown(page) == "environment"
    page.evaluate("location.hash = '#PYR101-item-in-hot-loop'")
    page.wait_for_function("document.body.dataset.shown == 'findings'")
    page.locator("#finding-5 .finding-tools").wait_for(state="attached")
    page.wait_for_timeout(200)
    assert 0 <= page.locator("#PYR101-item-in-hot-loop").bounding_box()["y"] < 120
    page.evaluate("location.hash = '#finding-1'")
    page.wait_for_function("document.activeElement.id == 'finding-1'")


@pytest.mark.parametrize("fragment", ["#/nowhere", "#nothing", "#/%E0%A4%A", "#%E0%A4%A", "#/"])
def test_a_damaged_address_shows_the_overview(open_page, perception, fragment):
    page = open_page(perception, fragment=fragment)
    assert shown(page) == "overview"
    assert page.url.endswith("#/overview") == fragment.startswith("#/")


def test_keys_turn_pages_search_and_help(open_page, case):
    page = open_page(*case)
    page.keyboard.press("]")
    page.wait_for_function("document.body.dataset.shown == 'findings'")
    page.keyboard.press("/")
    page.keyboard.type("[break]")
    assert shown(page) == "findings"
    page.locator("h1").first.click()
    page.keyboard.press("[")
    page.wait_for_function("document.body.dataset.shown == 'overview'")
    page.keyboard.press("[")
    assert shown(page) == "overview"
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
    assert cards.count() == 5
    page.get_by_role("button", name="data 2").click()
    assert cards.count() == 2
    page.get_by_role("searchbox").fill("no-WORKERS")
    assert cards.count() == 1
    assert "family=data" in page.url
    page.get_by_role("button", name="Copy the rewrite").and_(page.locator(":visible")).click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('DataLoader'))")
    page.get_by_role("button", name="Copy as Markdown").and_(page.locator(":visible")).click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('### PYR302'))")


def test_a_link_to_a_card_overrides_the_filter(open_page, case):
    page = open_page(*case, fragment="#/findings?family=data")
    page.locator("#finding-3").wait_for(state="hidden")
    page.evaluate("location.hash = '#PYR101-item-in-hot-loop'")
    page.locator("#finding-3").wait_for(state="visible")


def test_findings_show_their_source_and_their_rule(open_page, case):
    page = open_page(*case, fragment="#/findings")
    assert page.locator("#finding-1 .finding-source .marked").inner_text().strip() == "12x = loss.item()"
    page.locator("#finding-1 summary").click()
    assert page.locator("#finding-1 .explained h4").all_inner_texts()[:2] == ["What it does", "Why it costs"]


def test_every_page_fits_its_window(open_page, case):
    for width in (NARROW, WIDE, 1600):
        page = open_page(*case, width=width)
        for name in [link.get_attribute("href") for link in page.locator("nav.pages a").all()]:
            page.evaluate("name => { location.hash = name }", name)
            page.wait_for_function("name => '#/' + document.body.dataset.shown == name", arg=name)
            overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0, (width, name)


def test_without_javascript_it_is_one_document(open_page, case):
    page = open_page(*case, java_script_enabled=False)
    for part in ("#split", "#top", "#findings", "#latency", "#environment", "#memory"):
        assert page.locator(part).is_visible(), part
    assert not page.locator(".controls").is_visible()
    page.get_by_role("link", name="Show in the loader pipeline").first.click()
    assert page.url.endswith("#/data")
    assert page.locator("nav.pages a >> text=History").is_hidden()  # it is drawn by the script alone


def test_printing_shows_every_page(open_page, case):
    page = open_page(*case, fragment="#/memory", dark=True)
    page.emulate_media(media="print")
    for part in ("h1:not(.page-title)", "#split", "#findings", "#latency", "#environment"):
        assert page.locator(part).is_visible(), part
    assert not page.locator("nav.pages").is_visible()
    assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--ink').trim()") == "#1b1d21"
    assert len(page.pdf(format="A4")) > 10_000


def test_printing_after_a_visit_shows_the_document_and_no_drawing_of_the_script(open_page, case):
    page = open_page(*case, dark=True)
    for name in ("timeline", "flame", "memory"):
        page.evaluate("name => { location.hash = '#/' + name }", name)
        page.wait_for_function("name => document.body.dataset.shown == name", arg=name)
    page.locator(".widget.mounted:visible").first.wait_for()
    page.emulate_media(media="print")
    assert page.locator("h1:not(.page-title)").bounding_box()["y"] < 160
    assert (
        page.locator(".widget:visible, .tools:visible, nav.pages:visible, button:not(.sort):visible").count()
        == 0
    )
    hidden = page.evaluate(
        "[...document.querySelectorAll('main :is([data-page], [data-static]):not(.widget)')]"
        ".filter(part => part.childElementCount > 0 && part.getClientRects().length == 0).map(part => part.outerHTML.slice(0, 90))"
    )
    assert hidden == []


def test_language_is_switched_and_kept(open_page, case):
    page = open_page(*case)
    english = page.locator("#split").inner_text()
    page.get_by_role("button", name="中文").click()
    page.wait_for_function("document.documentElement.lang == 'zh-CN'")
    assert page.locator("#split").inner_text() == "一步的时间去向"
    assert titles(page)[:3] == ["概览", "发现", "时间线"]
    assert page.locator(".top .do").first.inner_text() == "Load with num_workers=2."
    page.reload()
    page.wait_for_function("document.documentElement.lang == 'zh-CN'")
    page.get_by_role("button", name="English").click()
    page.wait_for_function("document.documentElement.lang == 'en'")
    assert page.locator("#split").inner_text() == english
    assert titles(page)[:3] == ["Overview", "Findings", "Timeline"]


def test_language_follows_the_browser(open_page, case):
    page = open_page(*case, locale="zh-CN", fragment="#/findings")
    page.wait_for_function("document.documentElement.lang == 'zh-CN'")
    assert page.locator(".page-title").inner_text() == "发现"
    assert page.get_by_role("searchbox").get_attribute("placeholder") == "搜索发现"


def test_theme_is_chosen_and_kept(open_page, perception):
    page = open_page(perception, dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Theme: as the system").click()
    light = page.evaluate(ground)
    assert light != dark
    page.reload()
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(ground) == dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Theme: dark").click()
    assert page.evaluate(ground) == light


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
