"""PYR501: float32 products on golden GPU traces and on CPUs with and without bfloat16."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.workload.inference import Inference
from pyrometer.workload.program.record import Program

CODE = "PYR501"
SGEMM = "ampere_sgemm_128x64_tn"
N = 2048


def program(**parts: Any) -> Program:
    return Program(
        **{"kind": "inference", "device": "cpu", "compiled": False, "grad_mode": "inference_mode", **parts}
    )


def product(builder: Any, shapes: Any, kernel: str = SGEMM, kind: str = "float", dur: float = 900) -> Any:
    builder.op("aten::mm", 0, 20, **shapes([N, N], [N, N], kind=kind))
    builder.launch(kernel, 5, 20, dur)
    builder.op("aten::relu", 30, 5, **shapes([N, N], kind=kind))
    builder.launch("vectorized_elementwise_kernel<relu>", 31, 20 + dur, 50)
    return builder


def test_a_float32_product_on_an_a100_could_use_tf32(a100: Any, shapes: Any, traced: Any, only: Any) -> None:
    finding = only(CODE, traced(product(a100, shapes)))
    assert finding.where.op == "aten::mm"
    assert finding.advice.lever == "tf32"
    assert finding.cost.share == pytest.approx(900 / 970)
    assert finding.advice.gain.ratio_low == pytest.approx(1 - 900 / 970 * (1 - 19.5 / 156))
    assert finding.advice.gain.ratio_high == 1
    assert finding.advice.rewrite == 'torch.set_float32_matmul_precision("high")'
    assert finding.links == ["/trace/top_kernels/0"]
    assert finding.confidence == "high"


def test_without_shapes_the_names_of_kernels_tell(a100: Any, shapes: Any, traced: Any, only: Any) -> None:
    a100.op("aten::mm", 0, 20)
    a100.launch(SGEMM, 5, 20, 900)
    finding = only(CODE, traced(a100))
    assert (finding.confidence, finding.where.op) == ("medium", "aten::mm")


def test_a_device_without_tf32_is_told_of_float16(
    trace_tests: Any, tmp_path: Any, shapes: Any, traced: Any, only: Any
) -> None:
    v100 = {"id": 0, "name": "Tesla V100-SXM2-32GB", "numSms": 80, "computeMajor": 7, "computeMinor": 0}
    builder = trace_tests.TraceBuilder(tmp_path, deviceProperties=[v100])
    finding = only(CODE, traced(product(builder, shapes, "volta_sgemm_64x64_nt")))
    assert finding.advice.lever is None
    assert "GradScaler" in finding.advice.text
    assert finding.advice.rewrite == 'torch.autocast("cuda", dtype=torch.float16)'


def test_kernels_on_tensor_cores_are_fine(a100: Any, shapes: Any, traced: Any, findings: Any) -> None:
    tf32 = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(int)"
    assert findings(CODE, traced(product(a100, shapes, tf32))) == []


def test_sixteen_bit_products_are_fine(a100: Any, shapes: Any, traced: Any, findings: Any) -> None:
    assert findings(CODE, traced(product(a100, shapes, "ampere_fp16_gemm_simt", kind="c10::Half"))) == []


def test_a_product_limited_by_memory_gains_nothing(
    a100: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    a100.op("aten::mm", 0, 20, **shapes([N, N], [N, 1]))
    a100.launch("gemv2T_kernel_val", 5, 20, 900)
    assert findings(CODE, traced(a100)) == []


def test_a_device_without_lower_precisions_is_left_alone(
    trace_tests: Any, tmp_path: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    unknown = trace_tests.TraceBuilder(
        tmp_path, deviceProperties=[{"id": 0, "name": "Some GPU", "numSms": 10}]
    )
    assert findings(CODE, traced(product(unknown, shapes))) == []


def on_cpu(builder: Any, shapes: Any) -> Any:
    builder.op("aten::mm", 0, 8_000, **shapes([N, N], [N, N]))
    builder.op("aten::relu", 8_000, 500, **shapes([N, N]))
    return builder


def test_on_a_cpu_with_bfloat16_the_forward_pass_could_use_it(
    builder: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(on_cpu(builder, shapes), program=program(settings={"cpu_bf16": True})))
    assert (finding.advice.lever, finding.confidence) == ("autocast_bf16", "medium")
    assert finding.advice.gain.ratio_high == 1


def test_the_operator_that_takes_most_over_all_its_shapes_is_named(
    builder: Any, shapes: Any, traced: Any, only: Any
) -> None:
    builder.op("aten::mm", 0, 3_000, **shapes([N, N], [N, N]))
    for i, width in enumerate((1024, 1280, 1536, 1792)):
        builder.op("aten::addmm", 3_000 + i * 2_000, 1_900, **shapes([width], [N, N], [N, width]))
    finding = only(CODE, traced(builder, program=program(settings={"cpu_bf16": True})))
    assert finding.where.op == "aten::addmm"
    assert "mostly aten::addmm" in finding.message
    assert finding.resource == "op:aten::addmm"


@pytest.mark.parametrize(
    "parts",
    [
        {"settings": {"cpu_bf16": False}},
        {"settings": {}},
        {"settings": {"cpu_bf16": True}, "autocast_dtype": "bfloat16"},
        {"settings": {"cpu_bf16": True}, "compiled": True},
    ],
)
def test_on_other_cpus_and_programs_it_is_silent(
    builder: Any, shapes: Any, traced: Any, findings: Any, parts: dict[str, Any]
) -> None:
    assert findings(CODE, traced(on_cpu(builder, shapes), program=program(**parts))) == []


def test_small_products_would_lose_by_casting(builder: Any, shapes: Any, traced: Any, findings: Any) -> None:
    for i in range(20):
        builder.op("aten::mm", i * 60, 50, **shapes([128, 128], [128, 128]))
    assert findings(CODE, traced(builder, program=program(settings={"cpu_bf16": True}))) == []


def test_a_real_program_is_told_what_its_processor_can_do(observe: Any, findings: Any) -> None:
    work = Inference(nn.Sequential(nn.Linear(768, 768), nn.Linear(768, 768)), torch.randn(512, 768))
    evidence = observe(work, "trace", "program")
    expected = [CODE] if evidence.program.settings["cpu_bf16"] else []
    assert [finding.code for finding in findings(CODE, evidence)] == expected


def test_the_lower_precision_gives_the_same_within_its_digits() -> None:
    model, x = nn.Linear(256, 256), torch.randn(64, 256)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        lower = model(x)
    assert lower.dtype == torch.bfloat16
    torch.testing.assert_close(lower.float(), model(x).detach(), rtol=2e-2, atol=2e-2)
