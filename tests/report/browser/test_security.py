"""What a page must never do: run a user's text, call out, tell a secret, grow without bound."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pyrometer.report import html
from pyrometer.report.inline import inline, script
from pyrometer.report.widgets import PLACES

CANARY = "</script><img src=x onerror=\"document.title='owned'\">"
SECRET = "canary-secret-of-the-environment"
RAW_BYTES, PACKED_BYTES = 250_000, 80_000


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


def test_text_of_users_is_escaped_in_the_file(poisoned):
    text = html.page(*poisoned)
    assert CANARY not in text
    assert "<img src=x" not in text


def test_nothing_of_the_environment_is_told(rich, monkeypatch):
    for name in ("API_TOKEN", "PYROMETER_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, SECRET)
    for case in (rich(), rich(SECRET)):
        text = html.page(*case)
        assert SECRET not in text


def test_nothing_is_addressed_outside(poisoned, rich):
    for case in (poisoned, rich()):
        for address in Addresses(html.page(*case)).found:
            assert address.startswith(("#", "data:")), address


def test_the_same_document_gives_the_same_bytes(rich):
    case = rich()
    assert html.page(*case) == html.page(*case)


def test_the_script_of_the_fullest_page_is_small():
    """All that runs in a page with every drawing of a run: not data, and not the worker, which only starts for graphs."""
    drawn = {widget for areas in PLACES.values() for widget, page in areas if page != "comparison"}
    runs = "".join(one.text for one in (inline("theme.js"), script(drawn))).encode()
    assert len(runs) <= RAW_BYTES
    assert len(gzip.compress(runs, 9)) <= PACKED_BYTES


def test_a_page_runs_nothing_else(rich):
    text = html.page(*rich())
    widgets = set(re.findall(r'data-widget="(\w+)"', text))
    allowed = [str(one.text) for one in (inline("theme.js"), script(widgets))]
    assert re.findall(r"<script>(.*?)</script>", text, re.DOTALL) == allowed


def test_a_typical_page_is_small(rich):
    assert len(html.page(*rich()).encode()) <= 2_000_000


def test_no_asset_calls_out():
    folder = Path(html.__file__).parent / "assets"
    for path in folder.glob("*.*s"):
        matches = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8")))
        assert {address for address in matches if not address.startswith("http://www.w3.org/")} == set()
