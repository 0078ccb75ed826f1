"""The charts in a browser: read with pointer and keyboard, saved as pictures, clicked, at any width."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from document_fixtures import changed
from representative import every

from pyrometer.report.attachments import Attachments, PastRun
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.totals import RoofPoint

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

HOSTILE = "</script><img src=x onerror=alert(1)>"


def past(number: int, **changes: Any) -> PastRun:
    median = 0.03 + 0.001 * number
    return PastRun(
        run_id=f"run-{number}", created=f"2026-11-{number + 1:02}T09:30:00Z", commit_sha=f"{number:012x}",
        median_s=median, low_s=median * 0.99, high_s=median * 1.01, headline=HOSTILE, **changes,
    )  # fmt: skip


@pytest.fixture
def with_roofline(documents, tmp_path):
    """A check whose trace has two operators, one with a hostile name."""
    path = tmp_path / "trace.json"
    path.write_text(
        json.dumps(
            {
                "traceEvents": [
                    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 9}
                ]
            }
        )
    )
    base: dict[str, Any] = {"calls": 2, "dtypes": '["float"]', "bytes_per_s": 1e10, "bound": "memory"}
    points = [
        RoofPoint(
            op=HOSTILE, time_ns=900, share=0.9, flop_per_s=1e10, intensity=1.0, share_of_roof=0.5, **base
        ),
        RoofPoint(
            op="aten::mm", time_ns=100, share=0.1, flop_per_s=1e12, intensity=100.0, share_of_roof=0.5, **base
        ),
    ]
    report = msgspec.structs.replace(report_rank(read_trace([path]).ranks[0]), roofline=points)
    return changed(documents["steady"], trace=report)


def test_distribution_is_read_with_the_pointer(open_page, documents):
    page = open_page(documents["steady"], fragment="#/quality")
    drawing = page.locator(".drawing").first
    drawing.wait_for()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    tip = page.locator(".drawing .tooltip")
    expect(tip).to_contain_text("of the samples take at most this")
    expect(tip).to_contain_text("samples between")
    page.mouse.move(5, 5)
    expect(tip).to_have_count(0)


def test_marks_are_read_with_the_keyboard(open_page, documents):
    page = open_page(documents["steady"], fragment="#/quality")
    drawing = page.locator(".drawing").nth(1)
    drawing.press("ArrowRight")
    expect(drawing.locator(".tooltip")).to_contain_text("Warm-up step 1")
    drawing.press("End")
    expect(drawing.locator(".tooltip")).to_contain_text("Sample 300 of 300")
    drawing.press("Escape")
    expect(drawing.locator(".tooltip")).to_have_count(0)


@pytest.mark.parametrize("kind", ["SVG", pytest.param("PNG", marks=pytest.mark.exhaustive)])
def test_a_chart_is_saved(open_page, documents, kind):
    page = open_page(documents["steady"], fragment="#/quality")
    page.locator(".drawing svg").first.wait_for()
    with page.expect_download() as saving:
        page.get_by_role("button", name=kind, exact=True).first.click()
    content = saving.value.path().read_bytes()
    assert saving.value.suggested_filename == f"perception-distribution.{kind.lower()}"
    assert content.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")


@pytest.mark.exhaustive
def test_every_measurement_is_drawn_at_every_width(open_page, documents):
    for name in ("bimodal", "gpu", "interrupted"):
        for width in (380, 1600):
            page = open_page(documents[name], fragment="#/quality", width=width)
            page.locator(".drawing svg").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert "NaN" not in "".join(
                page.locator(".drawing svg").evaluate_all("all => all.map(one => one.outerHTML)")
            )


@pytest.mark.parametrize("outcome", every(4, ["faster", "slower", "same", "undecided"]))
def test_a_verdict_is_drawn_with_its_sign(open_page, documents, outcome):
    page = open_page(documents[f"verdict_{outcome}"], fragment="#/comparison", dark=True)
    page.locator(".drawing svg").first.wait_for()
    sign = {"faster": "◀", "slower": "▶", "same": "=", "undecided": "?"}[outcome]
    expect(page.locator(f".drawing .word.{outcome}").first).to_have_text(re.compile("^" + re.escape(sign)))
    page.locator(".drawing").nth(1).press("End")
    expect(page.locator(".drawing .tooltip")).to_contain_text("Block 40 of 40")


@pytest.mark.exhaustive
def test_a_row_of_a_matrix_shows_its_blocks(open_page, documents):
    page = open_page(documents["matrix"], fragment="#/comparison")
    forest = page.locator(".drawing.opens")
    labels = [cell.label for cell in documents["matrix"].matrix.cells if cell.verdict is not None]
    for label in labels[:2]:
        forest.press("ArrowRight")
        expect(forest.locator(".tooltip")).to_contain_text(label)
    forest.press("Enter")
    expect(page.get_by_text(f"Shown: {labels[1]} against")).to_be_visible()


def test_history_marks_changes_and_says_which_run(open_page, documents):
    runs = [past(0), past(1), past(2, change="slower"), past(3, change="faster")]
    page = open_page(documents["steady"], Attachments(history=runs), fragment="#/history")
    page.locator(".drawing svg").wait_for()
    expect(page.locator(".drawing .change.slower")).to_have_count(1)
    expect(page.locator(".drawing .change.faster")).to_have_count(1)
    page.locator(".drawing").press("Home")
    expect(page.locator(".drawing .tooltip")).to_be_visible()
    page.locator(".drawing").press("Enter")
    expect(page.locator(".run-chosen")).to_contain_text("run-0")
    expect(page.locator(".run-chosen")).to_contain_text(HOSTILE)
    expect(page.locator(".run-chosen a")).to_have_count(0)


def test_roofline_leads_to_the_operator(open_page, with_roofline):
    page = open_page(with_roofline, fragment="#/roofline")
    drawing = page.locator(".drawing.opens")
    expect(drawing.locator(".reached")).to_have_count(2)
    drawing.press("Home")
    expect(drawing.locator(".tooltip")).to_contain_text(HOSTILE)
    drawing.press("Enter")
    page.wait_for_function("location.hash.startsWith('#/operators?find=')")


def test_charts_have_names_for_those_who_do_not_see_them(open_page, documents):
    page = open_page(documents["steady"], Attachments(history=[past(0), past(1)]), fragment="#/quality")
    expect(page.locator(".drawing svg")).not_to_have_count(0)
    for drawing in page.locator(".drawing").all():
        assert drawing.get_attribute("aria-label")
        assert drawing.locator("svg").get_attribute("aria-label")
