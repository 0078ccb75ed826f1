"""PYR503: operators far from measured or printed peaks."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from pyrometer.hardware.peaks import Peak, Peaks
from pyrometer.hardware.record import Conditions
from recorded import evidence_of

CODE = "PYR503"
N = 2048


def peaks() -> Peaks:
    def one(best: float) -> Peak:
        return Peak(best=best, median=best, num_timings=3, work="test")

    return Peaks(
        device="cpu", name="a CPU", matmul_flop_per_s={"float32": one(1e11)}, conv_flop_per_s={}, cost_s={},
        copy_bytes_per_s={"memory": one(1e10)}, skipped={}, conditions=None, elapsed_s=0.0,
    )  # fmt: skip


def added(builder: Any, shapes: Any, us: float) -> Any:
    builder.op("aten::add", 0, us, **shapes([N, N], [N, N], []))
    return builder


LEAST_US = 3 * 4 * N * N / 1e10 * 1e6


def test_says_what_an_operator_reaches(builder: Any, shapes: Any, traced: Any, only: Any) -> None:
    finding = only(CODE, traced(added(builder, shapes, LEAST_US * 20), peaks=peaks()))
    assert finding.evidence["share_of_roof"] == pytest.approx(0.05, rel=1e-3)
    assert finding.evidence["bound"] == "memory"
    assert finding.advice.gain.ratio_low == pytest.approx(0.05, rel=1e-2)
    assert finding.advice.gain.ratio_high == 1
    assert "2048×2048" in finding.message
    assert finding.severity == "info"


def test_an_operator_near_the_roof_is_fine(builder: Any, shapes: Any, traced: Any, findings: Any) -> None:
    assert findings(CODE, traced(added(builder, shapes, LEAST_US * 2), peaks=peaks())) == []


def test_nothing_is_said_without_peaks(builder: Any, shapes: Any, traced: Any, findings: Any) -> None:
    assert findings(CODE, traced(added(builder, shapes, LEAST_US * 20))) == []


def test_operators_that_cannot_reach_the_roof_are_not_compared(
    builder: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    builder.op("aten::sort", 0, LEAST_US * 20, **shapes([N, N], [], [], []))
    assert findings(CODE, traced(builder, peaks=peaks())) == []


def test_small_operators_and_small_shares_are_left_alone(
    builder: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    builder.op("aten::mm", 0, 200_000, **shapes([N, N], [N, N]))
    builder.op("aten::add", 200_000, 15, **shapes([8, 8], [8, 8], []))
    assert findings(CODE, traced(builder, peaks=peaks())) == []


def test_the_layout_that_is_read_along_memory_is_many_times_as_fast() -> None:
    x, y = torch.randn(N, N), torch.randn(N, N)

    def best(operand: torch.Tensor) -> float:
        times = []
        for _ in range(5):
            begin = time.process_time()
            torch.add(x, operand)
            times.append(time.process_time() - begin)
        return min(times)

    laid_out = y.t().contiguous()
    assert best(y.t()) > 3 * best(laid_out)
    assert torch.equal(x + y.t(), x + laid_out)


@pytest.mark.parametrize(
    "state", [{"competing_load": 1.0, "logical_cpus": 2}, {"steal_share": 0.3}], ids=["neighbours", "stolen"]
)
def test_a_busy_machine_says_nothing_about_an_operator(
    builder: Any, shapes: Any, traced: Any, findings: Any, state: dict[str, Any]
) -> None:
    case = traced(added(builder, shapes, LEAST_US * 20), peaks=peaks())
    quiet, busy = (
        replace(evidence_of("tiny_ops").measurement, complete=False, conditions=Conditions(**each))
        for each in ({"competing_load": 0.1, "logical_cpus": 2}, state)
    )
    assert findings(CODE, replace(case, measurement=quiet))
    assert findings(CODE, replace(case, measurement=busy)) == []
