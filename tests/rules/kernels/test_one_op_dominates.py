"""PYR516: the operator to look at first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

CODE = "PYR516"


def test_names_operator_calls_cost_shapes_and_line(example: Callable[..., Any], only: Any) -> None:
    finding = only(CODE, example("inefficient_op", "workload"))
    assert (finding.where.op, finding.where.line) == ("aten::sort", 22)
    assert finding.severity == "warning"
    assert finding.cost.share > 0.3
    assert "[[4,50000]" in finding.evidence["shapes"][0]
    assert "per step of" in finding.message


def test_an_operator_that_does_more_than_is_used_is_told_what_does_less(
    example: Callable[..., Any], only: Any
) -> None:
    assert "torch.topk" in only(CODE, example("inefficient_op", "workload")).advice.text
    torch.manual_seed(0)
    x, a, b = torch.randn(999), torch.randn(8, 8) + 8 * torch.eye(8), torch.randn(8, 3)
    assert torch.equal(x.topk(5).values, x.sort(descending=True).values[:5])
    assert torch.equal(x.kthvalue(500).values, x.quantile(0.5))
    counts = torch.randint(0, 9, (99,)).sort().values
    assert torch.equal(counts.unique_consecutive(), counts.unique())
    assert torch.equal(torch.bincount(counts).nonzero().flatten(), counts.unique())
    torch.testing.assert_close(torch.linalg.solve(a, b), torch.linalg.inv(a) @ b)
    torch.testing.assert_close(torch.linalg.svdvals(a), torch.linalg.svd(a).S)
    assert torch.equal(b.expand(4, 8, 3), b.repeat(4, 1, 1))


def test_a_layer_that_is_most_of_a_small_network_is_a_remark(builder: Any, traced: Any, only: Any) -> None:
    builder.python("model.py(4): forward", 0, 1000)
    builder.op("aten::gelu", 10, 900)
    assert only(CODE, traced(builder)).severity == "info"


def test_a_thin_matrix_product_is_called_awkward(a100: Any, shapes: Any, traced: Any, only: Any) -> None:
    a100.op("aten::mm", 0, 20, **shapes([200_000, 8], [8, 1]))
    a100.launch("sgemm", 5, 20, 900)
    finding = only(CODE, traced(a100))
    assert finding.evidence["awkward_shapes"] == ["200000×8 by 8×1 has a side of 1"]
    assert "awkward" in finding.advice.text


def test_device_time_decides_where_there_is_a_device(a100: Any, shapes: Any, traced: Any, only: Any) -> None:
    a100.op("aten::relu", 0, 500, **shapes([64]))  # long on the host alone
    a100.launch("relu_kernel", 5, 20, 3)
    a100.op("aten::cumsum", 500, 20, **shapes([1024, 1024]))
    a100.launch("scan_kernel", 505, 520, 900)
    finding = only(CODE, traced(a100))
    assert finding.where.op == "aten::cumsum"
    assert finding.resource == "op:aten::cumsum"


@pytest.mark.parametrize(
    "op",
    [
        "aten::mm",
        "aten::mkldnn_convolution",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::mkldnn_rnn_layer",
        "aten::slice",  # a view does nothing: the machine was busy with something else
    ],
)
def test_what_a_network_is_made_of_is_no_finding(
    builder: Any, shapes: Any, traced: Any, findings: Any, op: str
) -> None:
    builder.op(op, 0, 900, **shapes([256, 256], [256, 256]))
    builder.op("aten::relu", 900, 50, **shapes([64]))
    assert findings(CODE, traced(builder)) == []


def test_many_operators_of_about_the_same_size_are_no_finding(
    a100: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    for i, name in enumerate(("add", "mul", "exp", "tanh", "sub")):
        a100.op(f"aten::{name}", i * 100, 20, **shapes([64, 64]))
        a100.launch(f"{name}_kernel", i * 100 + 5, i * 100 + 10, 90)
    assert findings(CODE, traced(a100)) == []


def test_a_step_of_pieces_is_no_finding(example: Callable[..., Any], findings: Any) -> None:
    assert findings(CODE, example("tiny_ops", "workload")) == []


def test_its_question_leads_to_the_operator_that_does_less() -> None:
    x = torch.randn(4, 1000)
    assert torch.equal(torch.sort(x, dim=1, descending=True).values[:, :10], torch.topk(x, 10, dim=1).values)
