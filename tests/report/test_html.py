"""The page: self-contained, safe, complete."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from document_fixtures import changed

from pyrometer.errors import InputError
from pyrometer.record import from_dict, to_dict
from pyrometer.report import html, kinds
from pyrometer.report.inline import inline, script

CANARY = "</script><img src=x onerror=alert(1)>"
VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    """Elements of a page; fails on elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def poisoned(documents):
    """A document with a measurement, a verdict and a canary wherever a user's text goes."""
    bench = documents["gpu"]
    caveat = documents["bimodal"].evidence.measurement.warnings[0]
    bad = msgspec.structs.replace(
        caveat,
        code=CANARY,
        message=CANARY,
        advice=msgspec.structs.replace(caveat.advice, title=f"`{CANARY}` {CANARY}"),
    )
    measurement = msgspec.structs.replace(
        bench.evidence.measurement, name=CANARY, config=CANARY, unit=CANARY, failure=CANARY, warnings=[bad], clock=CANARY,
        phases=[*documents["training"].evidence.measurement.phases[:1], msgspec.structs.replace(documents["training"].evidence.measurement.phases[1], name=CANARY)],
        memory=msgspec.structs.replace(documents["training"].evidence.measurement.memory, source=CANARY, device=CANARY),
    )  # fmt: skip
    verdict = msgspec.structs.replace(
        documents["verdict_undecided"].verdict,
        baseline=CANARY,
        candidate=CANARY,
        reason=CANARY,
        caveats=[bad],
    )
    environment = msgspec.structs.replace(bench.environment, os=CANARY, settings={CANARY: CANARY})
    return changed(
        bench, target=CANARY, command=[CANARY], run_id=CANARY, created=CANARY, measurement=measurement, verdict=verdict,
        environment=environment,
    )  # fmt: skip


def test_a_failed_run_looks_like_one(documents):
    found = documents["steady"]
    said = "step 3 raised ValueError: bad <7> (three.py:40)"
    measurement = msgspec.structs.replace(found.evidence.measurement, complete=False, failure=said)
    text = html.page(changed(found, measurement=measurement)).partition("<main")[2]
    heading = re.sub("<[^>]+>", "", text.partition("<h1")[2].partition("</h1>")[0]).partition(">")[2]
    assert " ".join(heading.split()).startswith("failed in step 3: ValueError (three.py:40)")
    static = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert static.count("step 3 raised ValueError: bad &lt;7&gt;") == 1
    assert static.index("What to do first") < static.index("step 3 raised ValueError")


def data_of(text: str) -> dict:
    (found,) = re.findall(
        r'<script type="application/json" id="pyrometer-data"( data-encoding="gzip")?>(.*?)</script>',
        text,
        re.DOTALL,
    )
    raw = gzip.decompress(base64.b64decode(found[1])) if found[0] else found[1]
    return json.loads(raw, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture(scope="module")
def pages(documents):
    return {name: html.page(document) for name, document in documents.items()}


def test_pages_are_well_formed_and_reachable(pages):
    for text in pages.values():
        page = Page(text)
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        links = {attrs["href"][1:] for tag, attrs in page.elements if tag == "a"}
        labels = {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs}
        assert links | labels <= set(ids)
        assert [tag for tag, _ in page.elements].count("h1") == 1
        for tag in ("main", "header", "footer"):
            assert [name for name, _ in page.elements].count(tag) == 1


def test_every_drawing_has_a_text_alternative(pages):
    for text in pages.values():
        for tag, attrs in Page(text).elements:
            if tag == "svg" and attrs.get("class") == "plot":
                assert attrs["role"] == "img"
                assert attrs["aria-label"]


def test_nothing_is_loaded_and_nothing_runs(pages):
    for text in pages.values():
        for _, attrs in Page(text).elements:
            assert not [name for name in attrs if name.startswith("on") or name == "style"]
            assert all("http" not in (attrs.get(name) or "") for name in ("src", "href"))


def test_only_our_own_scripts_run(pages):
    """Beside data a page carries our assets, byte for byte, and its policy admits those and no others."""
    for text in pages.values():
        ours = [inline("theme.js"), script(re.findall(r'data-widget="(\w+)"', text))]
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert scripts == [str(one.text) for one in ours]
        assert [one.hash for one in ours] == [digest(script) for script in scripts]
        assert directive(text, "script-src") == [f"'{one.hash}'" for one in ours]
        kinds_of_data = {attrs["type"] for tag, attrs in Page(text).elements if tag == "script" and attrs}
        assert kinds_of_data == {"application/json"}


def test_policy_allows_exactly_the_style_of_the_page(pages):
    text = pages["steady"]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert directive(text, "style-src") == [f"'{digest(style)}'"]
    assert directive(text, "default-src") == directive(text, "connect-src") == ["'none'"]
    assert "http" not in style
    assert "@import" not in style


def digest(text: str) -> str:
    """A text's hash as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def directive(text: str, name: str) -> list[str]:
    """The sources that the page's policy allows for a kind of content."""
    (policy,) = [attrs["content"] for _, attrs in Page(text).elements if "http-equiv" in attrs]
    return {part.split()[0]: part.split()[1:] for part in policy.split(";")}[name]


def test_untrusted_text_stays_text(documents):
    text = html.page(poisoned(documents))
    assert "<img" not in text
    assert text.count("</script>") == [tag for tag, _ in Page(text).elements].count("script")
    assert not [tag for tag, _ in Page(text).elements if tag == "img"]
    assert text.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") > 20


def test_page_can_be_turned_back_into_its_document(documents, pages):
    for name, document in documents.items():
        data = data_of(pages[name])
        assert from_dict(kinds.record_type(data["kind"]), data["document"]) == document
    assert data_of(html.page(poisoned(documents)))["document"]["evidence"]["target"] == CANARY


def test_environment_values_never_appear(documents, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "canary-of-the-environment")
    assert "canary-of-the-environment" not in html.page(documents["steady"])
    assert os.environ["API_TOKEN"]


def test_same_document_same_bytes(documents, pages):
    copied = from_dict(kinds.record_type("check"), to_dict(documents["training"]))
    assert html.page(copied) == pages["training"]


def test_size_with_2000_samples(pages):
    assert len(pages["gpu"].encode()) < 2_000_000


def test_first_screen_answers(pages):
    main = pages["steady"].split('<main id="main">')[1].split('<h2 id="latency">')[0]
    for said in (
        "31.3 frames/s",
        "31.9 ms per step",
        "Where the step goes",
        "Median step",
        "Can it be trusted?",
        "torch 2.13.0",
    ):
        assert said in main


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        (
            "steady",
            ["How to read this", "What would change this conclusion", "deadline 33.3 ms"],
            ["The script", "finding"],
        ),
        ("training", ["The script", "train.py --epochs 1", "backward"], ["deadline", "Textbook"]),
        ("gpu", ["until the call returned", "inside torch.compile", "NVIDIA H200"], ["Where the step goes"]),
        ("interrupted", ["interrupted after 3 steps", "<kbd>--budget 5m</kbd>"], ["Histogram"]),
        ("no_step", ["No step was seen", "Environment"], ["Latency"]),
        ("verdict_faster", ["1.42× faster", "<details>", "Cohen"], ["Latency"]),
        ("verdict_undecided", ["undecided: about 14.2 s more would resolve 5 %"], []),
    ],
)
def test_sections_follow_the_record(pages, name, present, absent):
    body = pages[name].split("<body>")[1].split("<script")[0]
    for said in present:
        assert said in body
    for unsaid in absent:
        assert unsaid not in body


def test_every_verdict_and_quantile_is_in_the_page(pages, documents):
    for outcome in ("faster", "slower", "same", "undecided"):
        assert f'class="{outcome}"' in pages[f"verdict_{outcome}"]
    for quantile in ("median", "P90", "P95", "P99"):
        assert f'<th scope="row">{quantile}</th>' in pages["steady"]


def test_report_is_written_whole_or_not_at_all(documents, tmp_path):
    path = tmp_path / "deep" / "report.html"
    assert html.write_report(documents["steady"], path) == path
    assert path.read_text(encoding="utf-8") == html.page(documents["steady"])
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_one_clear_error(documents, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write the report"):
        html.write_report(documents["steady"], tmp_path / "file" / "report.html")
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(InputError, match="cannot write the report"):
        html.write_report(documents["steady"], tmp_path / "taken.html")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "taken.html"]


def test_what_is_no_document_is_refused(documents):
    with pytest.raises(InputError, match="not a kind of document"):
        html.page(documents["steady"].evidence.measurement)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def open_in_browser(path: Path, profile: Path) -> tuple[str, list[str]]:
    """The page as the browser understood it, and what it wrote on its console."""
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--enable-logging=stderr", f"--user-data-dir={profile}", "--dump-dom",
    ]  # fmt: skip
    done = subprocess.run(
        [CHROMIUM, *flags, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_page_opens_from_disk_without_a_console_message(documents, tmp_path):
    path = html.write_report(poisoned(documents), tmp_path / "report.html")
    dom, console = open_in_browser(path, tmp_path / "profile")
    assert console == []
    assert "How to read this" in dom
    assert not [tag for tag, _ in Page(re.sub(r"<!doctype html>", "", dom)).elements if tag == "img"]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_policy_stops_what_it_should(documents, tmp_path):
    text = html.page(documents["verdict_same"])
    (tmp_path / "broken.html").write_text(
        text.replace("<main", '<main style="color: red"').replace("</main>", "<script>1</script></main>")
    )
    _, console = open_in_browser(tmp_path / "broken.html", tmp_path / "profile")
    assert any("inline style" in line for line in console)
    assert any("inline script" in line for line in console)
