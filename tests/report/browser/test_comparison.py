"""Two runs beside each other in a browser: the answer first, each side with its name, also in the files that are saved."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pyrometer.report.attachments import Attachments
from pyrometer.report.facts.comparison import target
from pyrometer.report.history_documents import CompareDocument
from pyrometer.store.comparison import compare_runs

pytestmark = pytest.mark.slow


@pytest.fixture
def compared(measured: ModuleType) -> CompareDocument:
    a, b = measured.measured_run(0.002, age_s=60), measured.measured_run(0.001)
    comparison = compare_runs(a, b)
    return CompareDocument(target=target(comparison), comparison=comparison)


@pytest.fixture
def drawn(rich: Any) -> Attachments:
    trace = rich("").attachments.traces[0]
    return Attachments(traces=[trace, trace])


@pytest.mark.parametrize("side", [pytest.param("before", marks=pytest.mark.exhaustive), "after"])
def test_saved_files_name_their_side(
    open_page: Any, compared: CompareDocument, drawn: Attachments, side: str
):
    page = open_page(compared, drawn, fragment=f"#/timeline?rank={side}")
    with page.expect_download() as picture:
        page.get_by_role("button", name="PNG").click()
    assert picture.value.suggested_filename == f"timeline-{side}.png"
    with page.expect_download() as events:
        page.get_by_role("button", name="Perfetto JSON").click()
    assert events.value.suggested_filename.startswith(f"timeline-{side}-from-")


@pytest.mark.parametrize("width", [380, pytest.param(1600, marks=pytest.mark.exhaustive)])
def test_the_answer_and_the_changes_stand_on_the_first_screen(
    open_page: Any, compared: CompareDocument, drawn: Attachments, width: int
):
    from playwright.sync_api import expect

    page = open_page(compared, drawn, width=width)
    expect(page.locator(".answer h1")).to_contain_text("B was 2.00× faster than A, not yet proven")
    expect(page.locator(".figures").first).to_contain_text("2.00 ms → 1.00 ms")
    expect(page.locator("nav.pages a").nth(1)).to_have_attribute("href", "#/comparison")
    page.wait_for_function("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
