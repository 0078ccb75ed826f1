"""Convolutions in any number of dimensions: sizes as torch computes them, FLOP as it counts them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pyrometer.trace.costs.call import NotRecordedError, parse_call
from pyrometer.trace.costs.registry import cost_of


@st.composite
def convolutions(draw, *, groups=True):
    rank = draw(st.integers(1, 3))
    count = draw(st.sampled_from([1, 2, 3])) if groups else 1

    def per_dimension(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    kernel, dilation = per_dimension(1, 3), per_dimension(1, 2)
    stride, padding = per_dimension(1, 3), per_dimension(0, 2)
    pixels = [draw(st.integers(d * (k - 1) + 1, 12)) for k, d in zip(kernel, dilation, strict=True)]
    c_in, c_out = count * draw(st.integers(1, 4)), count * draw(st.integers(1, 4))
    batch = draw(st.integers(1, 3))
    x = torch.empty(batch, c_in, *pixels, device="meta")
    return x, kernel, c_out, stride, padding, dilation, count


@given(case=convolutions())
def test_forward_counts_as_torch_counts(cost, counted, case):
    x, kernel, c_out, stride, padding, dilation, groups = case
    weight = torch.empty(c_out, x.shape[1] // groups, *kernel, device="meta")
    args = (x, weight, None, stride, padding, dilation, False, [0] * len(kernel), groups)
    out = torch.ops.aten.convolution(*args)
    found = cost("aten::convolution", *args)
    assert found.flop == counted(torch.ops.aten.convolution, *args)
    assert found.bytes_read == 4 * (x.numel() + weight.numel())
    assert found.bytes_written == 4 * out.numel()


@given(case=convolutions())
def test_transposed_counts_as_torch_counts(cost, counted, case):
    x, kernel, c_out, stride, padding, dilation, groups = case
    weight = torch.empty(x.shape[1], c_out // groups, *kernel, device="meta")
    padding = [min(p, d * (k - 1) // 2) for p, d, k in zip(padding, dilation, kernel, strict=True)]
    args = (x, weight, None, stride, padding, dilation, True, [0] * len(kernel), groups)
    out = torch.ops.aten.convolution(*args)
    found = cost("aten::convolution", *args)
    assert found.bytes_written == 4 * out.numel()
    assert found.flop == counted(torch.ops.aten.convolution, *args)


@given(case=convolutions(groups=False), mask=st.lists(st.booleans(), min_size=3, max_size=3))
def test_backward_counts_as_torch_counts(cost, counted, case, mask):
    x, kernel, c_out, stride, padding, dilation, groups = case
    weight = torch.empty(c_out, x.shape[1], *kernel, device="meta")
    out = torch.ops.aten.convolution(
        x, weight, None, stride, padding, dilation, False, [0] * len(kernel), groups
    )
    args = (out, x, weight, [c_out], stride, padding, dilation, False, [0] * len(kernel), groups, mask)
    found = cost("aten::convolution_backward", *args)
    assert found.flop == counted(torch.ops.aten.convolution_backward, *args)


def test_gradients_cost_what_the_forward_does_also_in_groups(cost):
    x, weight = torch.empty(2, 8, 9, 9), torch.empty(12, 2, 3, 3)
    geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 4)
    forward = cost("aten::convolution", x, weight, None, *geometry)
    backward = cost(
        "aten::convolution_backward", torch.empty(2, 12, 9, 9), x, weight, None, *geometry, [True] * 3
    )
    assert backward.flop == 2 * forward.flop


@pytest.mark.parametrize(
    ("name", "tail"),
    [
        ("aten::conv2d", ([2, 2], [1, 1], [1, 1], 1)),
        ("aten::mkldnn_convolution", ([1, 1], [2, 2], [1, 1], 1)),
        ("aten::miopen_convolution", ([1, 1], [2, 2], [1, 1], 1)),
        ("aten::cudnn_convolution_relu", ([2, 2], [1, 1], [1, 1], 1)),
    ],
)
def test_backends_order_their_arguments_differently_and_cost_the_same(cost, name, tail):
    x, weight = torch.empty(2, 3, 8, 8), torch.empty(5, 3, 3, 3)
    assert cost(name, x, weight, torch.empty(5), *tail).flop == 2 * 2 * math.prod((4, 4)) * 5 * 3 * 9


def test_real_layers_agree(cost, counted):
    layer = torch.nn.Conv2d(3, 8, 5, stride=2, padding=1, device="meta")
    x = torch.empty(2, 3, 32, 32, device="meta")
    assert (
        counted(layer, x) == cost("aten::conv2d", x, layer.weight, layer.bias, [2, 2], [1, 1], [1, 1], 1).flop
    )
    assert (
        cost("aten::cudnn_convolution", x, layer.weight, [1, 1], [2, 2], [1, 1], 1).bytes_written
        == 4 * layer(x).numel()
    )
    up = torch.empty(3, 4, 2, 2, device="meta")
    out = functional.conv_transpose2d(x, up, stride=2)
    assert (
        cost("aten::conv_transpose2d", x, up, None, [2, 2], [0, 0], [0, 0], 1, [1, 1]).bytes_written
        == 4 * out.numel()
    )


def test_without_a_stride_there_is_no_figure():
    call = parse_call(
        "aten::cudnn_convolution", "[[32,3,224,224],[64,3,7,7],[],[]]", '["float","float","",""]'
    )
    with pytest.raises(NotRecordedError, match="argument 3"):
        cost_of(call)


def test_old_backward_needs_no_stride():
    dims = "[[32,64,56,56],[32,256,56,56],[256,64,1,1],[],[]]"
    cost = cost_of(parse_call("aten::cudnn_convolution_backward", dims, '["float","float","float","",""]'))
    assert cost.flop == 2 * (2 * 32 * 56 * 56 * 256 * 64)
    assert cost.assumption
