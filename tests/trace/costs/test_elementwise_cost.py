"""Broadcasting, type promotion and traffic, against torch itself."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.costs.elementwise import ELEMENTWISE, TRUTH
from pyrometer.trace.costs.tensors import Tensor, broadcast, promote

TORCH = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
    "int16": torch.int16,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
    "complex32": torch.complex32,
}
dtypes = st.sampled_from(sorted(set(TORCH) - {"complex32"}))


@given(a=dtypes, b=dtypes, a_dims=st.booleans(), b_dims=st.booleans())
def test_promotion_is_torchs(a, b, a_dims, b_dims):
    one, two = (torch.empty((2,) if dims else (), dtype=TORCH[d]) for d, dims in ((a, a_dims), (b, b_dims)))
    pair = [Tensor(tuple(one.shape), a), Tensor(tuple(two.shape), b)]
    assert TORCH[promote(pair)] == torch.result_type(one, two)


@st.composite
def broadcastable(draw):
    full = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))

    def one():
        start = draw(st.integers(0, len(full)))
        return [size if draw(st.booleans()) else 1 for size in full[start:]]

    return one(), one()


@given(shapes=broadcastable())
def test_broadcasting_is_torchs(shapes):
    assert broadcast(shapes) == tuple(torch.broadcast_shapes(*shapes))


@given(shapes=broadcastable(), dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.int32]))
def test_binary_operators_read_both_and_write_the_result(cost, shapes, dtype):
    a, b = (torch.empty(shape, dtype=dtype) for shape in shapes)
    for name, function in (("add", torch.add), ("lt", torch.lt), ("mul", torch.mul)):
        out = function(a, b)
        found = cost(f"aten::{name}", a, b, 1)
        assert found.flop == out.numel()
        assert found.bytes_read == a.nbytes + b.nbytes
        assert found.bytes_written == out.nbytes


def test_an_fp32_addition_has_a_twelfth_flop_per_byte(cost):
    x = torch.empty(1000)
    found = cost("aten::add", x, x, 1)
    assert found.flop / found.num_bytes == pytest.approx(1 / 12)


def test_in_place_results_have_the_first_arguments_type(cost):
    x, y = torch.empty(64, dtype=torch.bfloat16), torch.empty(64)
    found = cost("aten::add_", x, y, 1)
    assert (found.bytes_read, found.bytes_written) == (64 * 6, 64 * 2)


def test_a_result_that_is_given_is_no_input(cost):
    x = torch.empty(64)
    assert cost("aten::mul", x, x, x).bytes_read == 2 * 64 * 4


def test_where_reads_a_mask_and_two_sides(cost):
    mask, x = torch.empty(64, dtype=torch.bool), torch.empty(64, dtype=torch.bfloat16)
    found = cost("aten::where", mask, x, x)
    assert (found.bytes_read, found.bytes_written) == (64 + 256, 128)


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_comparisons_write_bool(cost, name):
    x = torch.empty(10)
    assert cost(f"aten::{name}", x, x).bytes_written == 10


def test_every_elementwise_operator_exists_in_torch():
    known = {
        "fill_masked",
        "logical_and_scalar",
        "clamp_Tensor",
        "prelu_scalar",
        "where",
        "_s_where",
        "relu_backward",
    }
    assert [
        name for name in sorted(ELEMENTWISE) if not hasattr(torch.ops.aten, name) and name not in known
    ] == []


def test_dropout_writes_its_mask(cost):
    x = torch.empty(100, dtype=torch.float16)
    assert cost("aten::native_dropout", x, 0.5, True).bytes_written == 100 * 2 + 100
