"""Matrix products: FLOP as torch counts them, bytes by definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.costs.call import NotRecordedError, parse_call
from pyrometer.trace.costs.registry import cost_of

size = st.integers(1, 40)
dtypes = st.sampled_from([torch.float32, torch.bfloat16, torch.float64])


def meta(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")


def nbytes(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


@given(m=size, k=size, n=size, dtype=dtypes)
def test_mm_counts_as_torch_counts(*, cost, counted, m, k, n, dtype):
    a, b = meta(m, k, dtype=dtype), meta(k, n, dtype=dtype)
    found = cost("aten::mm", a, b)
    assert found.flop == counted(torch.mm, a, b) == 2 * m * k * n
    assert found.bytes_read == nbytes(a, b)
    assert found.bytes_written == nbytes(torch.mm(a, b))
    assert found.unit == "matrix"


@given(m=size, k=size, n=size, dtype=dtypes)
def test_addmm_counts_as_torch_counts(*, cost, counted, m, k, n, dtype):
    c, a, b = meta(n, dtype=dtype), meta(m, k, dtype=dtype), meta(k, n, dtype=dtype)
    found = cost("aten::addmm", c, a, b, 1, 1)
    assert found.flop == counted(torch.addmm, c, a, b)
    assert (found.bytes_read, found.bytes_written) == (nbytes(a, b, c), nbytes(torch.addmm(c, a, b)))


@given(b=size, m=size, k=size, n=size)
def test_batched_products_count_as_torch_counts(*, cost, counted, b, m, k, n):
    x, y, c = meta(b, m, k), meta(b, k, n), meta(b, m, n)
    assert cost("aten::bmm", x, y).flop == counted(torch.bmm, x, y)
    assert cost("aten::bmm", x, y).num_bytes == nbytes(x, y, c)
    assert cost("aten::baddbmm", c, x, y, 1, 1).flop == counted(torch.baddbmm, c, x, y)


@given(b=st.integers(1, 4), s=size, k=size, n=size)
def test_wrappers_agree_with_what_they_call(*, cost, counted, b, s, k, n):
    x, weight, bias = meta(b, s, k), meta(n, k), meta(n)
    assert cost("aten::linear", x, weight, bias).flop == counted(torch.nn.functional.linear, x, weight, bias)
    assert cost("aten::matmul", x, weight.T).flop == counted(torch.matmul, x, weight.T)
    vector = meta(k)
    assert cost("aten::matmul", x, vector).flop == 2 * b * s * k


def test_broadcast_batches_multiply():
    call = parse_call("aten::matmul", "[[3,1,2,5],[4,5,7]]", '["float","float"]')
    assert cost_of(call).flop == 2 * 3 * 4 * 2 * 5 * 7


def test_an_expanded_operand_is_read_once(cost):
    a = torch.empty(1, 8, device="meta").expand(16, 8)
    assert cost("aten::mm", a, meta(8, 4)).bytes_read == nbytes(meta(8), meta(8, 4))


def test_scaled_products_state_what_they_suppose():
    text = '["c10::Float8_e4m3fn","c10::Float8_e4m3fn","float","float"]'
    cost = cost_of(parse_call("aten::_scaled_mm", "[[64,32],[32,16],[],[]]", text))
    assert cost.flop == 2 * 64 * 32 * 16
    assert cost.dtype == "float8"
    assert cost.bytes_written == 64 * 16 * 2
    assert "bfloat16" in (cost.assumption or "")


def test_grouped_rows_meet_one_group_each():
    text = '["c10::BFloat16","c10::BFloat16","int"]'
    cost = cost_of(parse_call("aten::_grouped_mm", "[[100,32],[8,32,16],[8]]", text))
    assert cost.flop == 2 * 100 * 32 * 16


@pytest.mark.parametrize(
    ("dims", "types"),
    [
        (None, None),
        ("[[2,3]]", '["float"]'),
        ("[[2,3],[4,5]]", '["float","float"]'),
        ("[[2],[2]]", '["float","float"]'),
        ("[[],[]]", '["Scalar","Scalar"]'),
    ],
)
def test_what_is_not_recorded_is_said(dims, types):
    with pytest.raises(NotRecordedError):
        cost_of(parse_call("aten::mm", dims, types))
