"""The page of a job, in a browser."""

from __future__ import annotations

import pytest

from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.report.html import page as page_of
from pyrometer.report.html import save_page

NAME = "benchmarks/models/perf_transformer_blocks.py::perf_forward_with_cache[batch=32,dtype=bfloat16]"


@pytest.mark.slow
def test_the_gates_fit_a_window_of_1200_pixels(new_page, tmp_path):
    gates = [
        Gate(benchmark=NAME, metric=metric, kind="time", outcome="regressed", ratio=1.123, ci_low=1.0691, ci_high=1.1812,
             base=123.4e-6, head=138.2e-6, limit=1.05)
        for metric in ("median_s", "throughput")
    ]  # fmt: skip
    save_page(page_of(GuardReport(trusted=True, gates=gates), None), tmp_path / "guard.html")
    shown = new_page(viewport={"width": 1200, "height": 900})
    shown.goto((tmp_path / "guard.html").as_uri())
    overflowing = "all => all.filter(part => part.clientWidth && part.scrollWidth > part.clientWidth).length"
    assert shown.locator(".scroll:visible").count() > 0
    assert shown.locator(".scroll").evaluate_all(overflowing) == 0
