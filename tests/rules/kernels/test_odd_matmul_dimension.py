"""PYR504: sizes that tensor cores do not take, in source and in golden GPU traces."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

CODE = "PYR504"


@pytest.mark.parametrize(
    "body",
    [
        "import torch\nfrom torch import nn\nhead = nn.Linear(768, 50257, bias=False)  # <-\n",
        "import torch\nVOCABULARY = 50257\ntable = torch.nn.Embedding(VOCABULARY, 768)  # <-\n",
        "import torch\nfrom torch import nn\nhead = nn.Linear(768, out_features=32_001)  # <-\n",
    ],
)
def test_finds_vocabularies_that_are_no_multiple_of_eight(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "import torch\nfrom torch import nn\nhead = nn.Linear(768, 50304)\n",
        "import torch\nfrom torch import nn\nhead = nn.Linear(768, 10)\n",
        "import torch\nfrom torch import nn\nhead = nn.Linear(784, 1001)\n",
        "import torch\nfrom torch import nn\nhead = nn.Linear(768, config.vocab_size)\n",
        "import torch\nfrom torch import nn\nhead = nn.Linear(50257, 768)\n",
    ],
)
def test_is_silent_about_sizes_of_the_task(silent: Any, body: str) -> None:
    silent(CODE, body)


def product(
    builder: Any,
    shapes: Any,
    sizes: tuple[int, int, int],
    kind: str = "c10::BFloat16",
    kernel: str = "ampere_bf16_s16816gemm",
) -> Any:
    m, k, n = sizes
    builder.op("aten::mm", 0, 20, **shapes([m, k], [k, n], kind=kind))
    builder.launch(kernel, 5, 20, 900)
    return builder


def test_an_odd_vocabulary_on_a_gpu_is_told_with_its_time(
    a100: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(product(a100, shapes, (1024, 768, 50257))))
    assert finding.severity == "warning"
    assert (finding.evidence["size"], finding.evidence["multiple"]) == (50257, 8)
    assert "50264" in finding.advice.text
    assert finding.evidence["tensor_core_share"] == 1
    assert finding.links == ["/trace/tensor_cores/0"]
    assert finding.advice.gain is None


def test_without_tensor_cores_the_roof_says_what_padding_may_bring(
    a100: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(product(a100, shapes, (1024, 768, 50257), kernel="ampere_bf16_gemm_simple")))
    assert "without tensor cores" in finding.message
    assert finding.evidence["tensor_core_share"] == 0
    least_s = 2 * 1024 * 768 * 50257 / 312e12
    assert finding.advice.gain.ratio_low == pytest.approx(
        1 - finding.cost.share * (1 - least_s / 900e-6), rel=0.05
    )
    assert finding.advice.gain.ratio_high == 1


def test_products_in_tf32_are_told_and_those_that_do_not_use_it_are_not(
    a100: Any, shapes: Any, traced: Any, findings: Any, new_a100: Any
) -> None:
    plain = product(a100, shapes, (1024, 768, 1001), "float", "ampere_sgemm_128x64_nn")
    assert findings(CODE, traced(plain)) == []  # float32 as such has no multiples; another rule is about TF32
    fast = product(new_a100(), shapes, (1024, 768, 1001), "float", "cutlass_80_tensorop_s1688gemm_64x64")
    (finding,) = findings(CODE, traced(fast))
    assert (finding.evidence["size"], finding.evidence["multiple"]) == (1001, 4)
    assert finding.evidence["arithmetic"] == "tf32"


def test_of_a_transposed_weight_the_size_that_lies_innermost_counts(
    a100: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    arguments = shapes([1001, 768], [768, 512], kind="c10::BFloat16")
    a100.op("aten::mm", 0, 20, **arguments, **{"Input Strides": [[1, 1001], [512, 1]]})
    a100.launch("ampere_bf16_s16816gemm", 5, 20, 900)
    (finding,) = findings(CODE, traced(a100))
    assert finding.evidence["size"] == 1001


def test_the_place_is_that_of_the_product_with_these_shapes(
    a100: Any, shapes: Any, traced: Any, only: Any
) -> None:
    a100.python("net.py(3): encode", 0, 3_000)
    a100.op("aten::mm", 10, 20, **shapes([1024, 768], [768, 768], kind="c10::BFloat16"))
    a100.launch("ampere_bf16_s16816gemm", 15, 40, 2_000)
    a100.python("net.py(9): decode", 3_010, 1_000)
    a100.op("aten::mm", 3_020, 20, **shapes([1024, 768], [768, 50257], kind="c10::BFloat16"))
    a100.launch("ampere_bf16_s16816gemm", 3_025, 3_045, 900)
    finding = only(CODE, traced(a100))
    assert (finding.where.file, finding.where.line, finding.where.function) == ("net.py", 9, "decode")


@pytest.mark.parametrize(
    "case",
    [
        ((1024, 768, 50304), "c10::BFloat16"),
        ((1023, 768, 512), "c10::BFloat16"),  # rows of the batch do not matter
        ((1024, 768, 50257), "double"),
        ((1024, 12, 516), "float"),  # float32 as TF32: multiples of 4
    ],
)
def test_aligned_sizes_and_other_types_are_fine(
    a100: Any, shapes: Any, traced: Any, findings: Any, case: Any
) -> None:
    assert findings(CODE, traced(product(a100, shapes, *case))) == []


def test_a_cpu_has_no_tensor_cores(builder: Any, shapes: Any, traced: Any, findings: Any) -> None:
    builder.op("aten::mm", 0, 900, **shapes([1024, 768], [768, 50257], kind="c10::BFloat16"))
    assert findings(CODE, traced(builder)) == []


def test_a_padded_layer_gives_the_same_for_the_classes_that_exist() -> None:
    plain = nn.Linear(32, 257, bias=False)
    padded = nn.Linear(32, (257 + 63) // 64 * 64, bias=False)
    with torch.no_grad():
        padded.weight.zero_()[:257] = plain.weight
    x = torch.randn(4, 32)
    assert padded.out_features % 64 == 0
    torch.testing.assert_close(padded(x)[:, :257], plain(x))
