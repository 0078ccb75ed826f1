"""Links that show a colleague the same, a language that keeps what is shown, names that mislead, and pages by keyboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from document_fixtures import changed
from msgspec.structs import replace
from representative import standing_for_all

import pyrometer.report
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import TraceDocument
from pyrometer.trace.jobs.job import Suspect

from .conftest import OperatorsTraced

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

TURNED, LONG = "gemm\u202egnp.exe\x1b[31m", "k" * 10_000
ODD = {3: TURNED, 4: "two\nlines", 5: "", 6: LONG, 7: "=cmd()|' /C calc'!A1"}
SEEN = "gemm\\u202egnp.exe\\x1b[31m"
NOTICE = "#link-notice"
ASSETS = Path(pyrometer.report.__file__).parent / "assets"


@pytest.fixture(scope="module")
def traced(operators_traced: OperatorsTraced) -> tuple[TraceDocument, Attachments]:
    """Thirty operators, the i-th 10·i µs on the device; some have odd names."""
    return operators_traced([ODD.get(i, f"aten::op{i}") for i in range(1, 31)], lambda i: 60 + i)


@pytest.fixture(scope="module")
def case(rich):
    return rich()


def firsts(page: Any) -> Any:
    return page.locator(".full-table").first.locator("tbody tr:not(.gap) td:first-child")


def fragment(page: Any) -> str:
    return str(page.evaluate("location.hash"))


def goes(page: Any, address: str) -> None:
    page.evaluate("address => { location.hash = address }", address)


def test_a_link_shows_the_same_table(open_page, traced):
    page = open_page(*traced, fragment="#/operators")
    page.get_by_role("searchbox").first.fill("op2")
    page.get_by_role("button", name="Filter columns").first.click()
    page.get_by_label("Filter: Device self").fill("<=250us")
    page.get_by_role("columnheader", name="Operator").get_by_role("button").click()
    expect(page).to_have_url(re.compile("sort=name&where="))
    assert fragment(page) == "#/operators?find=op2&sort=name&where=device_self_ns:%3C=250us".replace(
        "=2", "%3D2"
    )
    expect(firsts(page)).to_have_count(7)
    expect(firsts(page).first).to_have_text("aten::op2")
    other = open_page(*traced, fragment=fragment(page))
    expect(firsts(other)).to_have_text([f"aten::op{i}" for i in (2, *range(20, 26))])
    expect(other.get_by_label("Filter: Device self")).to_have_value("<=250us")
    expect(other.locator(NOTICE)).to_have_count(0)


def test_the_back_button_leads_to_the_filter_that_was(open_page, traced):
    page = open_page(*traced, fragment="#/operators?find=op1")
    box = page.get_by_role("searchbox").first
    expect(box).to_have_value("op1")
    goes(page, "#/operators?find=op2&sort=-calls")
    expect(box).to_have_value("op2")
    expect(page.get_by_role("columnheader", name="Calls")).to_have_attribute("aria-sort", "descending")
    goes(page, "#/timeline")
    expect(page.locator(".timeline-view")).to_be_visible()
    page.go_back()
    expect(box).to_have_value("op2")
    page.go_back()
    expect(box).to_have_value("op1")
    expect(page.get_by_role("columnheader", name="Calls")).to_have_attribute("aria-sort", "none")


@pytest.mark.exhaustive
def test_who_comes_back_by_the_list_of_pages_finds_all_as_it_was(open_page, traced):
    page = open_page(*traced, fragment="#/operators?find=op1")
    for name in ("Timeline", "Operators"):
        page.locator("nav.pages").get_by_role("link", name=name).click()
    expect(page.get_by_role("searchbox").first).to_have_value("op1")
    expect(page).to_have_url(re.compile(r"#/operators\?find=op1$"))


@pytest.mark.exhaustive
def test_a_link_shows_the_same_measured_range_kind_and_folded_tracks(open_page, traced):
    page = open_page(*traced, fragment="#/timeline")
    canvas = page.locator(".timeline-view canvas")
    box = canvas.bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 200, box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 90, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    measured = page.get_by_role("region", name="Measured range")
    expect(measured).to_be_visible()
    page.locator(".kinds button").first.click()
    page.locator(".track-names button").first.click()
    expect(page).to_have_url(re.compile(r"fold=.*kind=.*measure=\d+\.\.\d+"))
    other = open_page(*traced, fragment=fragment(page))
    again = other.get_by_role("region", name="Measured range")
    expect(again).to_have_text(measured.text_content())
    expect(other.locator(".kinds button").first).to_have_attribute("aria-pressed", "true")
    expect(other.locator(".track-names button").first).to_have_attribute("aria-expanded", "false")


UNKNOWN = {
    "#/operators?sort=-colour,calls&where=calls:often&rank=9": "rank=9 · sort=-colour · where=calls:often",
    "#/operators?tab=colours": "tab=colours",
    "#/timeline?from=soon&measure=3&select=nothing": "from=soon · select=nothing · measure=3",
    "#/flame?weight=heavy&order=call": "weight=heavy",
    "#/nowhere?x=1": "#/nowhere",
}


def test_what_a_link_does_not_say_is_left_out_and_told(open_page, traced):
    page = open_page(*traced, fragment=next(iter(UNKNOWN)))
    notice = page.locator(NOTICE)
    for address, told in UNKNOWN.items():
        goes(page, address)
        expect(notice).to_contain_text("not understood")
        assert sorted(notice.text_content().split(": ", 1)[1].split(" · ")) == sorted(told.split(" · "))
        goes(page, "#/operators?find=op1")
        expect(notice).to_have_count(0)


def test_the_language_changes_and_nothing_else(open_page, traced):
    page = open_page(*traced, fragment="#/operators?tab=kernels&find=gemm2&sort=name")
    expect(firsts(page).first).to_have_text("gemm2")
    firsts(page).first.click()
    page.get_by_role("button", name="Filter columns").first.click()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("searchbox").first).to_have_value("gemm2")
    expect(page.locator("tr[aria-selected=true]")).to_have_count(1)
    expect(page.locator(".table-bounds")).to_have_count(1)
    expect(page.get_by_role("tab", selected=True)).to_contain_text("内核")
    goes(page, "#/timeline?from=3000000&to=9000000&measure=4000000..5000000&select=1")
    details = page.get_by_role("region", name="测得的区间").or_(page.locator(".timeline-details")).first
    expect(details).to_be_visible()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("region", name="Measured range")).to_be_visible()
    expect(page.get_by_role("region", name="Selected slice")).to_be_visible()
    page.keyboard.press("w")
    expect(page).not_to_have_url(re.compile("from=3000000&"))
    assert "measure=4000000..5000000" in fragment(page)


PAGES = (
    "timeline", "flame", "operators", "roofline", "idle", "memory", "compile", "data", "quality", "history", "findings",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    standing_for_all({name: name for name in PAGES}, "timeline", "compile"),
)
def test_a_page_says_the_same_whether_it_began_in_chinese_or_was_turned_to_it(open_page, case, name):
    fresh = open_page(*case, locale="zh-CN", fragment=f"#/{name}")
    expect(fresh.locator("html")).to_have_attribute("lang", "zh-CN")
    turned = open_page(*case, fragment=f"#/{name}")
    expect(turned.locator(".widget.mounted:visible .note[aria-busy]")).to_have_count(0)
    turned.get_by_role("button", name="中文").click()
    expect(turned.locator("html")).to_have_attribute("lang", "zh-CN")
    for page in (fresh, turned):
        expect(page.locator(".widget.mounted:visible .note[aria-busy]")).to_have_count(0)
    expect(turned.locator("main")).to_have_text(fresh.locator("main").inner_text(), use_inner_text=True)


def test_odd_names_are_seen_for_what_they_are(open_page, traced, tmp_path):
    page = open_page(*traced, fragment="#/operators")
    names = firsts(page)
    page.get_by_role("columnheader", name="Device self").get_by_role("button").click()
    for text in (SEEN, "two ↵ lines", "(unnamed)"):
        expect(names.filter(has_text=text)).to_have_count(1)
    assert "\u202e" not in page.evaluate("document.body.innerText")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    with page.expect_download() as saving:
        page.locator("summary", has_text="Copy").first.click()
        page.get_by_role("button", name="Save CSV").first.click()
    saving.value.save_as(tmp_path / "saved.csv")
    text = (tmp_path / "saved.csv").read_text(encoding="utf-8-sig")
    assert SEEN in text
    assert "'=cmd()" in text
    assert not re.search(r"(^|[,\"])\s*[=+@]cmd", text, re.MULTILINE)
    goes(page, "#/timeline?find=kkkk")
    page.get_by_label("Search the timeline").press("Enter")
    details = page.get_by_role("region", name="Selected slice")
    expect(details).to_contain_text("kkkk")
    assert details.bounding_box()["height"] < 500
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    goes(page, "#/flame")
    expect(page.locator(".icicle-details")).to_be_visible()


@pytest.mark.exhaustive
def test_without_a_script_odd_names_are_seen_too(open_page, traced):
    page = open_page(*traced, java_script_enabled=False)
    text = page.locator("main").inner_text()
    assert SEEN in text
    assert "\u202e" not in page.content().split('id="pyrometer-data"')[0]


@pytest.mark.exhaustive
def test_what_drawings_show_is_folded_and_can_be_had_as_text(open_page, case):
    page = open_page(*case, fragment="#/memory")
    text = page.get_by_role("button", name="Also as text")
    ledger = page.locator("#ledger")
    expect(page.locator(".explored").first).to_be_visible()
    expect(ledger).to_be_hidden()
    text.click()
    expect(text).to_have_attribute("aria-pressed", "true")
    expect(ledger).to_be_visible()
    goes(page, "#/overview")
    expect(text).to_be_hidden()
    goes(page, "#/environment")
    expect(text).to_be_hidden()


def test_no_page_says_the_same_heading_twice(open_page, case):
    page = open_page(*case)
    for name in page.locator("nav.pages a").evaluate_all("links => links.map(link => link.hash)"):
        goes(page, name)
        expect(page.locator("body")).to_have_attribute("data-shown", name.removeprefix("#/"))
        expect(page.locator(".widget.mounted:visible .note[aria-busy]")).to_have_count(0)
        inner_texts = page.locator("main :is(h2, figcaption > strong):visible").all_inner_texts()
        assert len(set(inner_texts)) == len(inner_texts), (name, inner_texts)


def test_a_drawing_that_fails_gives_way_to_its_text(open_page, traced, watch, tmp_path):
    from pyrometer.report.html import page as page_of

    text = re.sub(r'(data-block="operators/0"[^>]*>)[^<]+', r"\1{", page_of(*traced))
    path = Path(tmp_path, "damaged.html")
    path.write_text(text, encoding="utf-8")
    page = open_page(path, fragment="#/operators")
    expect(page.locator(".caveat.failed")).to_be_visible()
    expect(page.locator("#operators-0")).to_be_visible()


@pytest.mark.exhaustive
def test_the_split_says_how_to_read_it(open_page, case, perception):
    for document in (case, (perception, Attachments())):
        page = open_page(*document)
        expect(page.locator(".split .reading:visible").first).to_contain_text("The bar is")


def test_a_page_is_used_by_keyboard_alone(open_page, traced):
    """From the first key: to the content, to a page, through its fields to the drawing, and there to a slice."""
    page = open_page(*traced, fragment="#/timeline")
    expect(page.locator(".timeline-view canvas")).to_be_visible()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
              const one = document.activeElement;
              const style = getComputedStyle(one);
              const named = (one.getAttribute("aria-label") || one.textContent || one.title || one.placeholder || "").trim();
              return { tag: one.tagName, named, ring: style.outlineStyle != "none" && parseFloat(style.outlineWidth) > 0 };
            }"""
        )
        if found["tag"] == "BODY":
            break
        assert found["named"], found
        assert found["ring"], found
        reached.add(found["tag"])
    assert reached >= {"A", "BUTTON", "INPUT", "CANVAS"}
    page.locator(".timeline-view canvas").focus()
    page.keyboard.press("m")
    expect(page.get_by_role("region", name="Measured range")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Measured range")).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("op30")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Selected slice")).to_contain_text("aten::op30")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")


@pytest.mark.parametrize("width", [380, pytest.param(640, marks=pytest.mark.exhaustive)])
def test_narrow_and_magnified_pages_fit(open_page, case, width):
    """640 CSS pixels are a window of 1280 at 200 %."""
    page = open_page(*case, width=width)
    for name in page.locator("nav.pages a").evaluate_all("links => links.map(link => link.hash)"):
        goes(page, name)
        expect(page.locator("body")).to_have_attribute("data-shown", name.removeprefix("#/"))
        expect(page.locator(".widget.mounted:visible .note[aria-busy]")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name


WITHOUT_CHAPTER = """() => {
  const seen = [...document.querySelectorAll("main > section")].filter((section) => section.checkVisibility());
  return seen.filter((one, i) => one.matches(".part") && (seen[i + 1] === undefined || seen[i + 1].matches(".part"))).length;
}"""


@pytest.mark.exhaustive
def test_no_page_has_the_heading_of_a_rank_without_a_chapter(open_page, areas):
    page = open_page(*areas["ranks"])
    headings = page.locator("section.part:visible")
    for address in page.locator("nav.pages a").evaluate_all("links => links.map(link => link.hash)"):
        goes(page, address)
        expect(page.locator("body")).to_have_attribute("data-shown", address.removeprefix("#/"))
        assert page.evaluate(WITHOUT_CHAPTER) == 0, address
    goes(page, "#/flame")
    expect(headings).to_have_count(0)
    page.get_by_role("button", name="Also as text").click()
    expect(headings).to_have_count(0)  # the rank stands in the title of each chapter


@pytest.mark.exhaustive
def test_rows_of_stragglers_are_low_on_a_telephone(open_page, areas):
    document, attachments = areas["ranks"]
    (straggler,) = document.evidence.job.stragglers
    names = (
        "aten::scaled_dot_product_flash_attention",
        "void cutlass::Kernel2<cutlass_80_tensorop>",
        "between operators",
    )
    suspects = [Suspect(name=name, side="host", excess_ns=9, own_ns=9) for name in names]
    job = replace(document.evidence.job, stragglers=[replace(straggler, suspects=suspects)])
    page = open_page(changed(document, job=job), attachments, fragment="#/ranks", width=380)
    row = page.locator("section[aria-labelledby=stragglers] tbody tr")
    expect(row).to_contain_text("void cutlass")
    assert row.bounding_box()["height"] < 5 * 21
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


FOUND_OUT = (
    "script, style, code, pre, kbd, svg, td, dd, tbody th, h1, h3, .brand, .target, .controls, footer, .bound, .subtitle, "
    ".caveat, .trusted, .said, .do, .name, .proof, .finding > p:not(.proofs), .findings > h2, .explained, .legend, .code, "
    ".part > h2, h2.quiet, .card > p, .figures dd, .crumbs, .much, .pieces, .head, .site, .idle-said, .track-names, "
    ".icicle-line dd, .icicle-name, .icicle-trail, .source-lines, .recompiled, .phase-legend, .graph-export, "
    ".heat th, .widget option, .rewrite > p:not(.note), .marks, .machine, .what small, .queue, .lane, .pipeline, #soak, #starts, "
    "[aria-labelledby=limits] dt, [aria-labelledby=fusions] dt, [aria-labelledby=guards] dt, [aria-labelledby=rejected] dt, "
    "[aria-labelledby=cache] dt, [aria-labelledby=modules] dt"
)
"""What Pyrometer found out, names, figures and code: they stay as they were written."""

ENGLISH = """([left, same]) => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const [text, element] = [node.nodeValue.trim(), node.parentElement];
    if (!/[a-z]{2}/.test(text) || /[\\u3400-\\u9fff]/.test(text) || element.closest(left) !== null || !element.checkVisibility() || same.includes(text)) continue;
    found.push(`${text} <${element.tagName.toLowerCase()} ${element.className}>`);
  }
  for (const element of document.querySelectorAll("[placeholder], :is(button, input, section, svg.plot:not([aria-label*=compile], [aria-label^=Ratio]))[aria-label]")) {
    if (!element.checkVisibility() || (element.closest(left) !== null && !element.matches("svg.plot"))) continue;
    for (const name of ["placeholder", "aria-label"]) {
      const text = element.getAttribute(name) ?? "";
      if (/[a-z]{3}/.test(text) && !/[\\u3400-\\u9fff]/.test(text)) found.push(`${text} <@${name}>`);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def all_pages(case, traced, areas, documents):
    """What every kind of page shows."""
    plain = {name: (document, Attachments()) for name, document in documents.items()}
    return {**plain, **areas, "rich": case, "traced": traced}


SHOWN = (
    "rich", "traced", "verdict_faster", "soak", "matrix", "gpu", "compare", "ranks", "compile", "memory", "snapshot",
)  # fmt: skip


@pytest.mark.parametrize("name", standing_for_all({name: name for name in SHOWN}, "rich", "matrix", "ranks"))
def test_a_chinese_page_has_no_english_of_ours(open_page, all_pages, name):
    shown = all_pages[name]
    page = open_page(*shown, locale="zh-CN")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    english, chinese = (
        json.loads(ASSETS.joinpath(f"{one}.json").read_bytes()) for one in ("english", "chinese")
    )
    same = [text for text, said in zip(english, chinese, strict=True) if text == said]  # such as names
    found = set()
    for address in page.locator("nav.pages a").evaluate_all("links => links.map(link => link.hash)"):
        goes(page, address)
        expect(page.locator("body")).to_have_attribute("data-shown", address.removeprefix("#/"))
        expect(page.locator(".widget.mounted:visible .note[aria-busy]")).to_have_count(0)
        found |= {f"{address} {text}" for text in page.evaluate(ENGLISH, [FOUND_OUT, same])}
    assert not found, "\n".join(sorted(found))
