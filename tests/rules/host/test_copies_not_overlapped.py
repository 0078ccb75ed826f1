"""PYR115: copies that nothing runs beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.finding import Finding

CODE = "PYR115"


def stepping(builder: Any, copy: str, *, beside: bool) -> Any:
    """Steps of 1 ms with a copy of 0.2 ms before a kernel of 0.7 ms, or beside it."""
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(1): train", start, 995)
        builder.op("aten::to", start + 5, 8)
        at = start + (300 if beside else 20)
        builder.launch(copy, start + 6, at, 200, cat="gpu_memcpy", stream=9, bytes=8 << 20)
        builder.op("aten::mm", start + 15, 15)
        builder.launch("gemm", start + 17, start + 230, 700)
    return builder


@pytest.mark.parametrize(
    ("copy", "resource"),
    [("Memcpy HtoD (Pinned -> Device)", "copy:H2D"), ("Memcpy DtoH (Device -> Pinned)", "copy:D2H")],
)
def test_copies_before_the_kernels_are_told(
    builder: Any, evidence_of: Any, only: Any, copy: str, resource: str
) -> None:
    finding = only(CODE, evidence_of(stepping(builder, copy, beside=False)))
    assert finding.resource == resource
    assert finding.cost.share == pytest.approx(600 / 2925, rel=0.05)
    assert finding.evidence["hidden_share"] == 0
    assert finding.advice.lever == "prefetch_device"
    assert finding.where.file == "train.py"


def test_copies_beside_kernels_are_as_they_should_be(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    evidence = evidence_of(stepping(builder, "Memcpy HtoD (Pinned -> Device)", beside=True))
    assert findings(CODE, evidence) == []


@pytest.mark.parametrize("copy", ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)"])
def test_pageable_copies_must_be_pinned_first_and_others_stay_on_the_device(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]], copy: str
) -> None:
    assert findings(CODE, evidence_of(stepping(builder, copy, beside=False))) == []
