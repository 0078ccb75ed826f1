"""PYR506: layouts of images."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
import torch
from msgspec.structs import replace
from torch import nn

from pyrometer.workload.inference import Inference

CODE = "PYR506"
CONVERTS = "void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float, false, true>(int)"


def converted(builder: Any, shapes: Any, us: float) -> Any:
    builder.op("aten::cudnn_convolution", 0, 20, **shapes([8, 64, 56, 56], [64, 64, 3, 3], kind="c10::Half"))
    builder.launch(CONVERTS, 2, 20, us)
    builder.launch("sm80_xmma_fprop_implicit_gemm_f16f16", 6, 20 + us, 1000)
    return builder


def test_conversions_on_a_gpu_are_told_with_their_time(
    a100: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(converted(a100, shapes, 250)))
    share = 250 / 1270
    assert finding.cost.share == pytest.approx(share)
    assert finding.advice.gain.ratio_low == pytest.approx(1 - share)
    assert finding.advice.gain.ratio_high == pytest.approx(1 - share / 2)
    assert finding.confidence == "high"


def test_few_conversions_are_left_alone(a100: Any, shapes: Any, traced: Any, findings: Any) -> None:
    assert findings(CODE, traced(converted(a100, shapes, 5))) == []


def network(width: int = 32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3)
    )


@pytest.fixture
def look(observe: Any, traced: Any, builder: Any) -> Any:
    """The real program, and a trace in which convolutions take a given share."""

    def seen(model: nn.Module, x: torch.Tensor, share: float = 0.9) -> Any:
        builder.op("aten::mkldnn_convolution", 0, 1000 * share)
        builder.op("aten::relu", 1000 * share, 1000 * (1 - share))
        return traced(builder, program=observe(Inference(model, x), "program").program)

    return seen


X = torch.randn(2, 3, 32, 32)


def test_wide_convolutions_that_dominate_a_cpu_are_worth_a_try(look: Any, only: Any) -> None:
    finding = only(CODE, look(network(), X))
    assert (finding.severity, finding.confidence) == ("warning", "medium")
    assert finding.advice.lever == "channels_last"
    assert finding.advice.gain.ratio_low == pytest.approx(1 - 0.9 * 0.4)
    assert finding.advice.gain.ratio_high == pytest.approx(1 - 0.9 * 0.05)


def test_narrow_convolutions_are_left_alone(look: Any, findings: Any) -> None:
    assert findings(CODE, look(network(8), X)) == []


def test_a_small_share_is_left_alone(look: Any, findings: Any) -> None:
    assert findings(CODE, look(network(), X, share=0.1)) == []


def test_the_layout_that_is_there_already_is_fine(look: Any, findings: Any) -> None:
    model = network().to(memory_format=torch.channels_last)
    assert findings(CODE, look(model, X.to(memory_format=torch.channels_last))) == []


def test_a_compiled_model_chooses_the_layout_itself(look: Any, findings: Any) -> None:
    evidence = look(network(), X)
    compiled = msgspec.structs.replace(evidence.program, compiled=True)
    assert findings(CODE, replace(evidence, program=compiled)) == []


def test_the_other_layout_gives_the_same() -> None:
    model, x = network(), torch.randn(2, 3, 32, 32)
    other = copy.deepcopy(model).to(memory_format=torch.channels_last)
    result = other(x.to(memory_format=torch.channels_last))
    assert result.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-5)
