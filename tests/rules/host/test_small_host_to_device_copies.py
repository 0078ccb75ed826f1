"""PYR112: many small copies to the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.finding import Finding

CODE = "PYR112"

SOURCE = """\
import torch


def step(batch, device):
    scales = []
    for sample in batch:
        scales.append(torch.tensor(sample.scale, device=device))
    return torch.stack(scales)
"""


@pytest.mark.parametrize(
    "body",
    [
        "for value in history:\n    weight = torch.tensor(value, device=device)  # <-",
        "weights = [torch.tensor(value, device=device) for value in history]  # <-",
    ],
)
def test_finds_tensors_that_are_built_on_the_device_one_by_one(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "weights = torch.tensor(history, device=device)",
        "weights = [torch.tensor(value) for value in history]",
        'weights = [torch.tensor(value, device="cpu") for value in history]',
        'host = torch.device("cpu")\nweights = [torch.tensor(value, device=host) for value in history]',
        "for value in history:\n    weight = torch.tensor([], device=device)",
        "import torch\n\ntable = [torch.tensor(value, device='cuda') for value in range(3)]",
    ],
)
def test_is_silent_about_one_copy_and_about_the_host(silent: Any, body: str) -> None:
    silent(CODE, body)


def copying(builder: Any, copies: int, num_bytes: int, memory: str = "Pageable") -> Any:
    """Two steps of 1 ms with a long kernel and some copies to the device."""
    for i in range(2):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(4): step", start, 990)
        builder.op("aten::mm", start + 600, 20)
        builder.launch("gemm", start + 602, start + 610, 380)
        for k in range(copies):
            builder.op("aten::to", start + 5 + k * 15, 12)
            name = f"Memcpy HtoD ({memory} -> Device)"
            at = start + 6 + k * 15
            builder.launch(name, at, at + 4, 1, cat="gpu_memcpy", bytes=num_bytes)
    return builder


def test_many_small_copies_are_told_with_the_line(builder: Any, evidence_of: Any, only: Any) -> None:
    finding = only(CODE, evidence_of(copying(builder, 30, 4), "train.py", SOURCE))
    assert finding.where.line == 7
    assert finding.evidence["small_copies_per_step"] == 30
    assert finding.cost.share == pytest.approx(60 * 5 / 1990, rel=0.02)


@pytest.mark.parametrize(("copies", "num_bytes"), [(4, 4), (30, 1 << 20)])
def test_few_or_large_copies_are_not(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]], copies: int, num_bytes: int
) -> None:
    assert findings(CODE, evidence_of(copying(builder, copies, num_bytes), "train.py", SOURCE)) == []


def test_a_trace_without_a_device_has_no_copies(traced: Any, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, traced("tiny_ops", "workload")) == []


def test_collecting_on_the_host_gives_the_same_with_one_tensor(ops_of: Any) -> None:
    scales = [0.5 * i for i in range(20)]
    expected, before = ops_of(lambda: torch.stack([torch.tensor(scale) for scale in scales]))
    result, after = ops_of(lambda: torch.tensor(scales))
    assert torch.equal(result, expected)
    assert after.total() * 10 < before.total()
