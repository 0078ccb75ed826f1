"""The way of the data in the browser."""

from __future__ import annotations

from typing import Any

import pytest
from document_fixtures import changed

from pyrometer.advice import Advice, Gain
from pyrometer.loading.report import LoaderReport, StageTime
from pyrometer.loading.settings import LoaderSettings

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.slow  # a real browser per test

CANARY = "</script><img src=x onerror=alert(1)>"


def stage(name: str, where: Any, per_step_s: float, cpu_share: float | None = None) -> StageTime:
    return StageTime(
        name=name, where=where, per_step_s=per_step_s, share=per_step_s / 0.05, cpu_share=cpu_share
    )


def make_report(**changes: Any) -> LoaderReport:
    values: dict[str, Any] = {
        "verdict": "starved-steady",
        "sentence": f"the step waits{CANARY}",
        "settings": LoaderSettings(num_workers=4, prefetch_factor=2),
        "measured_step_s": 0.05,
        "data_share": 0.6,
        "wait_s": 0.03,
        "wait_fraction": 0.6,
        "first_batch_s": 0.2,
        "free_data_ratio": 0.4,
        "stages": [
            stage("fetch", "worker", 0.0, 0.0),
            stage("decode", "worker", 0.18, 0.97),
            stage("wait", "main", 0.03),
            stage("forward", "main", 0.02),
            stage(f"log{CANARY}", "main", 0.001),
        ],
        "occupancy": 0.25,
        "queue_batches": 8,
        "epoch_batches": 100,
        "advice": [
            Advice(
                slug="s",
                title=f"more workers{CANARY}",
                why="busy",
                rewrite="u",
                effect="e",
                fix_class="exact",
                gain=Gain(saves_s=0.01, method="model"),
            )
        ],
    }
    return LoaderReport(**{**values, **changes})


@pytest.fixture
def opened(open_page, perception):
    def open_report(report: LoaderReport, **options: Any) -> Any:
        return open_page(changed(perception, loading=report), fragment="#/data", **options)

    return open_report


def test_the_picture_marks_what_the_step_waits_for(opened):
    page = opened(make_report())
    expect(page.locator(".station b")).to_have_text(["decode", "wait", "forward", f"log{CANARY}"])
    marked = page.locator(".station.holds-back")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("▲ the step waits for this")
    expect(marked).to_contain_text("97.0 % on a CPU")
    expect(page.locator(".slots > i")).to_have_count(8)
    expect(page.locator("img")).to_have_count(0)


def test_what_would_help_is_on_the_scale_of_the_step(opened):
    page = opened(make_report())
    figure = page.get_by_role("figure", name="What would help")
    expect(figure.locator(".length")).to_have_count(3)
    lengths = figure.locator(".length").evaluate_all(
        "bars => bars.map((bar) => bar.getBoundingClientRect().width)"
    )
    assert [length / lengths[0] for length in lengths] == pytest.approx([1, 0.8, 0.4], abs=0.01)
    pieces = figure.locator(".length > i").evaluate_all(
        "bars => bars.map((bar) => bar.getBoundingClientRect().width)"
    )
    assert pieces == pytest.approx(lengths, abs=1)


@pytest.mark.exhaustive
def test_a_healthy_loader_has_nothing_marked(opened):
    page = opened(make_report(verdict="healthy", advice=[]))
    page.locator(".station").first.wait_for()
    expect(page.locator(".station.holds-back")).to_have_count(0)
    expect(page.locator(".loading .caveat.calm")).to_have_count(1)


@pytest.mark.exhaustive
def test_little_data_is_shown_and_what_is_missing_told(opened):
    page = opened(
        make_report(
            verdict="no-loader", settings=LoaderSettings(), stages=[], occupancy=None, queue_batches=0, advice=[],
            epoch_batches=None,
        )
    )  # fmt: skip
    page.locator(".missing summary").click()
    expect(page.get_by_text("could not be timed")).to_be_visible()


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_nothing_is_wider_than_a_telephone(opened, dark):
    page = opened(make_report(), width=380, dark=dark)
    page.locator(".pipeline").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
