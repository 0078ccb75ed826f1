"""Records in a notebook: every one has a fragment, and untrusted text in it stays text."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import msgspec
import pytest
from document_fixtures import changed

from pyrometer.advice import Advice
from pyrometer.memory.profile import PredictedMemory
from pyrometer.place import Place
from pyrometer.record import Record
from pyrometer.report.notebook.fragment import FRAGMENTS
from pyrometer.rules.finding import Finding

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


def picture_in(text):
    """The drawing, as a reader of SVG sees it."""
    (encoded,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    return ET.fromstring(base64.b64decode(encoded))


def test_a_measurement_shows_its_headline_and_histogram(documents):
    text = html_of(documents["steady"].evidence.measurement)
    assert "31.9 ms per step" in text
    assert "99 %" in text or "p99" in text
    words = "".join(picture_in(text).itertext())
    assert "median 31.9 ms" in words
    assert 'alt="Histogram of ' in text


@pytest.mark.parametrize("name", ["steady", "gpu"])
def test_a_drawing_is_one_image_that_needs_nothing_from_the_page(documents, name):
    whole = picture_in(html_of(documents[name].evidence.measurement))
    assert "var(" not in "".join(whole.itertext())
    axis, plot = [part for part in whole if part.get("class") in {"y-axis", "plot"}]
    assert float(plot.get("x")) >= float(axis.get("width"))
    assert float(plot.get("x")) + float(plot.get("width")) <= float(whole.get("width"))


def test_what_a_notebook_that_is_not_trusted_leaves_can_be_read(documents):
    """Its style is gone, and elements that it does not know lose their tags and keep their text."""
    text = html_of(documents["steady"].evidence.measurement)
    tags = Tags(text.replace(text.split("<style>")[1].split("</style>")[0], ""))
    assert not {"svg", "rect", "path"} & set(tags.names)
    assert re.search(r"<b>[^<]*31\.9 ms per step", text)
    assert 'align="left" style="text-align: left"' in text


def test_a_record_among_others_is_one_line(documents):
    class Box(Record, frozen=True, kw_only=True):
        side_m: float

    class Printer:
        def text(self, said):
            self.said = said

    printer = Printer()
    documents["steady"].evidence.measurement._repr_pretty_(printer, False)
    assert printer.said.startswith("<Measurement: ")
    assert "31.9 ms per step" in printer.said
    Box(side_m=1.5)._repr_pretty_(printer, False)
    assert printer.said == "Box(side_m=1.5)"


def test_a_prediction_and_an_environment_show_themselves(documents):
    environment = documents["steady"].environment
    assert environment.cpu.model in html_of(environment)
    predicted = PredictedMemory(
        peak_bytes=3 << 20,
        ledger_bytes={"parameters": 1 << 20, "activations": 2 << 20},
        peak_phase="backward",
    )
    bundle = predicted._repr_mimebundle_()
    assert bundle["text/html"].count('style="color: #') == 2
    assert bundle["text/plain"] == "predicted peak 3.00 MiB in backward"
    assert "activations 66.7 %" in "".join(picture_in(bundle["text/html"]).itertext())


def test_a_verdict_shows_its_forest(documents):
    text = html_of(documents["verdict_faster"].verdict)
    assert "faster" in text
    assert any("faster" in (part.get("class") or "") for part in picture_in(text).iter())


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
        confidence="high",
        advice=Advice(slug="a", title="Keep it on the device", fix_class="semantic"),
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
    measurement = msgspec.structs.replace(documents["gpu"].evidence.measurement, name=CANARY, clock=CANARY)
    document = changed(documents["training"], target=CANARY)
    for record in (measurement, document):
        tags = Tags(html_of(record))
        assert CANARY not in html_of(record)
        assert tags.names.count("img") <= 1  # our own drawing
        assert "script" not in tags.names
        assert tags.names.count("style") == 1


@pytest.mark.parametrize("kind", FRAGMENTS, ids=lambda kind: kind.__name__)
def test_every_kind_with_a_fragment_is_a_record(kind):
    assert issubclass(kind, Record)


def test_nothing_is_loaded_and_no_rule_leaves_the_fragment(documents):
    text = html_of(documents["steady"].evidence.measurement)
    assert "http" not in text.replace("http-equiv", "")
    style = text.split("<style>")[1].split("</style>")[0]
    assert style.lstrip().startswith(".pyrometer {")
    assert style.rstrip().endswith("}")
    assert style.count("{") == style.count("}")
