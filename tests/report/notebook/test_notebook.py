"""Records in a notebook: every one has a fragment, and untrusted text in it stays text."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest

from pyrometer.record import Record
from pyrometer.report.notebook.fragment import FRAGMENTS
from pyrometer.rules.finding import Finding, Place

CANARY = "</style></script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.names, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        assert not [name for name, _ in attrs if name.startswith("on")]
        self.names.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def html_of(record):
    return record._repr_mimebundle_()["text/html"]


def test_a_measurement_shows_its_headline_and_histogram(documents):
    text = html_of(documents["steady"].measurement)
    assert "31.9 ms per step" in text
    assert "svg" in Tags(text).names
    assert "99 %" in text or "p99" in text


def test_a_verdict_shows_its_forest(documents):
    text = html_of(documents["verdict_faster"].verdict)
    assert "faster" in text
    assert "svg" in Tags(text).names


def test_a_check_shows_what_it_found(documents):
    text = html_of(documents["training"])
    assert documents["training"].target in text


def test_a_finding_shows_what_to_do():
    finding = Finding(
        code="PYR101",
        name="item-in-hot-loop",
        severity="warning",
        message="`.item()` waits",
        where=Place(file="train.py", line=3),
        fix_class="semantic",
        confidence="high",
        advice="Keep it on the device",
    )
    text = html_of(finding)
    assert "train.py:3" in text
    assert "Keep it on the device" in text


def test_any_other_record_shows_its_fields():
    class Box(Record, frozen=True, kw_only=True):
        side_m: float
        label: str

    text = html_of(Box(side_m=2.5, label=CANARY))
    assert "side_m" in text
    assert "2.5" in text
    assert "img" not in Tags(text).names
    assert Box(side_m=2.5, label="a")._repr_mimebundle_()["text/plain"].startswith("Box(")


def test_untrusted_text_stays_text(documents):
    measurement = msgspec.structs.replace(documents["gpu"].measurement, name=CANARY, clock=CANARY)
    document = msgspec.structs.replace(documents["training"], target=CANARY)
    for record in (measurement, document):
        tags = Tags(html_of(record))
        assert "img" not in tags.names
        assert "script" not in tags.names
        assert tags.names.count("style") == 1


@pytest.mark.parametrize("kind", FRAGMENTS, ids=lambda kind: kind.__name__)
def test_every_kind_with_a_fragment_is_a_record(kind):
    assert issubclass(kind, Record)


def test_nothing_is_loaded_and_no_rule_leaves_the_fragment(documents):
    text = html_of(documents["steady"].measurement)
    assert "http" not in text.replace("http-equiv", "")
    style = text.split("<style>")[1].split("</style>")[0]
    assert style.lstrip().startswith(".pyrometer {")
    assert style.rstrip().endswith("}")
    assert style.count("{") == style.count("}")
