"""PYR520: Fourier transforms of awkward lengths."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.rules.kernels.awkward_transform_length import fast_length
from pyrometer.trace.reporting.rank_report import report_rank

CODE = "PYR520"


@pytest.fixture
def transforms(builder: Any, shapes: Any) -> Callable[[int], Case]:
    """`transforms(5987)`: a trace of a convolution by transforms of this length."""

    def case(length: int) -> Case:
        for i in range(3):
            start = i * 1000.0
            builder.annotate(f"ProfilerStep#{i}", start, 1000)
            builder.op("aten::_fft_r2c", start + 10, 300, **shapes([2, 32, length], [], [], []))
            builder.op("aten::mul", start + 320, 100, **shapes([2, 32, length // 2 + 1], []))
            half = [2, 32, length // 2 + 1]
            builder.op(
                "aten::_fft_c2r", start + 430, 300, **shapes(half, [], [], [], kind="c10::complex<float>")
            )
        return Case(target="test", trace=report_rank(builder.read()))

    return case


@pytest.mark.parametrize("length", [5987, 2 * 1499, 31 * 64])
def test_a_length_with_a_large_prime_factor_is_told_with_a_better_one(
    transforms: Callable[[int], Case], only: Callable[..., Finding], length: int
) -> None:
    finding = only(CODE, transforms(length))
    gain = finding.advice.gain
    assert f"{fast_length(length):,}" in finding.advice.title
    assert finding.evidence["next_fast_length"] == fast_length(length)
    assert gain is not None
    assert 0 < (gain.ratio_low or 0) < (gain.ratio_high or 0) < 0.9


@pytest.mark.parametrize("length", [6000, 4096, 11 * 13 * 16, 37])
def test_products_of_small_factors_and_short_ones_are_left_alone(
    transforms: Callable[[int], Case], findings: Callable[..., list[Finding]], length: int
) -> None:
    assert findings(CODE, transforms(length)) == []


def test_zeros_at_the_end_change_nothing(run: Callable[..., dict[str, Any]]) -> None:
    scipy = SimpleNamespace(fft=SimpleNamespace(next_fast_len=lambda size, real: fast_length(size)))
    given = {"torch": torch, "scipy": scipy, "signal": torch.randn(4000), "kernel": torch.randn(1988)}
    before, after = run(CODE, "Example", **given), run(CODE, "Use instead", **given)
    assert (before["size"], after["fast"]) == (5987, 6000)
    torch.testing.assert_close(before["filtered"], after["filtered"], atol=1e-3, rtol=1e-3)
