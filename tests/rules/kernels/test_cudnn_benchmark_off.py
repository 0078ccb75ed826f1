"""PYR513: convolutions of fixed shapes on CUDA."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrometer.workload.program.record import Program

CODE = "PYR513"
OFF = {"cudnn_benchmark": False, "cudnn_deterministic": False, "deterministic": False}


def program(device: str = "cuda", **settings: Any) -> Program:
    return Program(
        kind="inference",
        device=device,
        compiled=False,
        grad_mode="inference_mode",
        settings={**OFF, **settings},
    )


def convolved(builder: Any, shapes: Any, sizes: list[int]) -> Any:
    for i, size in enumerate(sizes):
        builder.annotate(f"ProfilerStep#{i}", i * 1000, 990)
        builder.op(
            "aten::cudnn_convolution", i * 1000 + 10, 20, **shapes([8, 64, size, size], [64, 64, 3, 3])
        )
        builder.launch("sm80_xmma_fprop_implicit_gemm", i * 1000 + 15, i * 1000 + 40, 800)
    return builder


def test_fixed_shapes_are_worth_timing(a100: Any, shapes: Any, traced: Any, only: Any) -> None:
    finding = only(CODE, traced(convolved(a100, shapes, [56, 56]), program=program()))
    assert finding.evidence["num_shapes"] == 1
    assert finding.severity == "info"
    assert finding.advice.gain is None
    assert finding.advice.rewrite == "torch.backends.cudnn.benchmark = True"


def test_shapes_that_change_would_be_timed_again_and_again(
    a100: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    assert findings(CODE, traced(convolved(a100, shapes, [56, 48]), program=program())) == []


@pytest.mark.parametrize("setting", ["cudnn_benchmark", "cudnn_deterministic", "deterministic"])
def test_what_is_on_already_or_must_be_reproducible_is_left_alone(
    a100: Any, shapes: Any, traced: Any, findings: Any, setting: str
) -> None:
    evidence = traced(convolved(a100, shapes, [56, 56]), program=program(**{setting: True}))
    assert findings(CODE, evidence) == []


def test_a_cpu_has_no_cudnn(builder: Any, shapes: Any, traced: Any, findings: Any) -> None:
    for i in range(2):
        builder.op("aten::mkldnn_convolution", i * 1000, 900, **shapes([8, 64, 56, 56], [64, 64, 3, 3]))
    assert findings(CODE, traced(builder, program=program("cpu"))) == []


def test_the_setting_can_be_switched_and_put_back() -> None:
    before = torch.backends.cudnn.benchmark
    try:
        exec("torch.backends.cudnn.benchmark = True", {"torch": torch})
        assert torch.backends.cudnn.benchmark
    finally:
        torch.backends.cudnn.benchmark = before
