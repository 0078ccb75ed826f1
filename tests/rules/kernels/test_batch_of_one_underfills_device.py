"""PYR505: a batch of one on a large device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.workload.inference import Inference
from pyrometer.workload.program.record import InputTensor, Program

CODE = "PYR505"
BLOCK = {"block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}


def program(*shapes: list[int]) -> Program:
    inputs = [
        InputTensor(name=str(i), shape=shape, dtype="float32", device="cuda", num_bytes=4)
        for i, shape in enumerate(shapes)
    ]
    return Program(kind="inference", device="cuda", compiled=False, grad_mode="inference_mode", inputs=inputs)


def launched(builder: Any, shapes: Any, blocks: int) -> Any:
    builder.op("aten::relu", 0, 20, **shapes([1, 64]))
    builder.launch("relu_kernel", 5, 20, 900, grid=[blocks, 1, 1], **BLOCK)
    return builder


def test_kernels_that_fill_a_part_of_the_device_are_told(
    a100: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(launched(a100, shapes, 108), program=program([1, 3, 224, 224], [4])))
    assert finding.evidence["waves"] == pytest.approx(1 / 8)
    assert finding.severity == "info"
    assert finding.advice.gain is None  # a single request does not get faster by it
    assert "fill 12 % of the device" in finding.message


def test_a_full_device_or_a_larger_batch_is_fine(a100: Any, shapes: Any, traced: Any, findings: Any) -> None:
    assert findings(CODE, traced(launched(a100, shapes, 108), program=program([8, 3, 224, 224]))) == []
    assert findings(CODE, traced(launched(a100, shapes, 108), program=program([5]))) == []


def test_kernels_that_fill_the_device_are_fine(a100: Any, shapes: Any, traced: Any, findings: Any) -> None:
    assert findings(CODE, traced(launched(a100, shapes, 108 * 8), program=program([1, 3, 224, 224]))) == []


def test_a_cpu_is_no_such_device(observe: Any, findings: Any) -> None:
    work = Inference(nn.Linear(64, 64), torch.randn(1, 64))
    assert findings(CODE, observe(work, "trace", "program")) == []


def test_samples_in_one_batch_give_what_they_give_alone() -> None:
    model, requests = nn.Linear(16, 16), torch.randn(8, 16)
    alone = torch.cat([model(request.unsqueeze(0)) for request in requests])
    torch.testing.assert_close(model(requests), alone)
