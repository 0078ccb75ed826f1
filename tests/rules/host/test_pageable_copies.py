"""PYR113: batches that are copied from pageable memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from pyrometer.rules.finding import Finding

CODE = "PYR113"

SOURCE = """\
def train(model, loader, device):
    for batch in loader:
        batch = batch.to(device)
        model(batch)
"""


def stepping(builder: Any, memory: str, num_bytes: int = 4 << 20, *, hidden: bool = False) -> Any:
    """Steps of 1 ms with a copy of 0.2 ms and a kernel of 0.7 ms, one after the other or side by side."""
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(1): train", start, 995)
        builder.op("aten::to", start + 10, 210)
        name = f"Memcpy HtoD ({memory} -> Device)"
        copy_at = start + (300 if hidden else 15)
        builder.launch(name, start + 11, copy_at, 200, cat="gpu_memcpy", stream=9, bytes=num_bytes)
        if memory == "Pageable":
            builder.call("cudaStreamSynchronize", start + 20, 198)
        builder.op("aten::mm", start + 225, 15)
        builder.launch("gemm", start + 227, start + 240, 700)
    return builder


def test_pageable_copies_are_told_with_their_line_and_rate(builder: Any, evidence_of: Any, only: Any) -> None:
    finding = only(CODE, evidence_of(stepping(builder, "Pageable"), "train.py", SOURCE))
    assert finding.where.line == 3
    assert finding.evidence["gb_per_s"] == pytest.approx((4 << 20) / 200e-6 / 1e9)
    assert finding.cost.share > 0.15
    assert finding.advice.lever == "pin_memory"
    assert "/trace/sync_points/0" in finding.links


def test_a_step_that_only_copies_gets_no_shorter_than_the_bus_needs(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for i in range(3):
        start = i * 20_000
        builder.annotate(f"ProfilerStep#{i}", start, 20_000)
        builder.python("train.py(1): train", start, 19_995)
        builder.op("aten::to", start + 10, 19_010)
        name = "Memcpy HtoD (Pageable -> Device)"
        builder.launch(name, start + 12, start + 15, 19_000, cat="gpu_memcpy", stream=9, bytes=110_000_000)
        builder.op("aten::mm", start + 19_100, 15)
        builder.launch("gemm", start + 19_102, start + 19_120, 700)
    gain = only(CODE, evidence_of(builder, "train.py", SOURCE)).advice.gain
    assert gain.ratio_low == pytest.approx(2 / 20, rel=0.05)  # 110 MB at 55 GB/s, of 20 ms
    assert gain.ratio_high == pytest.approx(1 - 0.95 * (1 - 5.8 / 12), rel=0.05)  # pinned, on a slow bus


def test_pinned_copies_are_another_matter(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(stepping(builder, "Pinned"), "train.py", SOURCE)) == []


def test_small_copies_are_another_matter(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(stepping(builder, "Pageable", 4096), "train.py", SOURCE)) == []


def test_copies_that_a_kernel_hides_cost_nothing(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    evidence = evidence_of(stepping(builder, "Pinned", hidden=True), "train.py", SOURCE)
    assert findings(CODE, evidence) == findings("PYR115", evidence) == []


def test_the_rewrite_names_settings_that_exist() -> None:
    loader = DataLoader(torch.arange(8), batch_size=4, pin_memory=torch.accelerator.is_available())
    moved = [batch.to("cpu", non_blocking=True) for batch in loader]
    assert torch.equal(torch.cat(moved), torch.arange(8))
