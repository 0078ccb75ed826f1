"""Reductions, normalisations, indexing, copies, pooling, losses, optimizers: sizes as torch gives them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pyrometer.trace.costs.call import NotRecordedError, parse_call
from pyrometer.trace.costs.registry import cost_of

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(shape=shapes, data=st.data(), keep=st.booleans())
def test_reductions_write_what_is_left(cost, shape, data, keep):
    dims = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), max_size=3))
    dims = list({d % len(shape): d for d in dims}.values())
    x = torch.empty(shape)
    found = cost("aten::sum", x, dims, keep, None)
    wanted = torch.sum(x, dims, keep) if dims else torch.sum(x)
    assert (found.flop, found.bytes_read, found.bytes_written) == (x.numel(), x.nbytes, wanted.nbytes)
    assert cost("aten::argmax", x, dims[0] if dims else None, keep).bytes_written == (
        torch.argmax(x, dims[0] if dims else None, keep).nbytes
    )


@given(shape=shapes, k=st.integers(1, 5), data=st.data())
def test_sorting_writes_values_and_indices(cost, shape, k, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, k = torch.empty(shape), min(k, shape[dim])
    assert cost("aten::sort", x, dim, False).bytes_written == sum(t.nbytes for t in torch.sort(x, dim))
    assert cost("aten::topk", x, k, dim).bytes_written == sum(t.nbytes for t in torch.topk(x, k, dim))


@given(
    n=st.integers(5, 20),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    data=st.data(),
    ceil=st.booleans(),
)
def test_pooling_has_torchs_sizes(*, cost, n, kernel, stride, data, ceil):
    padding = data.draw(st.integers(0, kernel // 2))
    x = torch.empty(2, 3, n, n + 1, device="meta")
    out, index = functional.max_pool2d(x, kernel, stride, padding, 1, ceil_mode=ceil, return_indices=True)
    args = ([kernel, kernel], [stride, stride], [padding, padding])
    found = cost("aten::max_pool2d_with_indices", x, *args, [1, 1], ceil)
    assert found.bytes_written == 4 * out.numel() + 8 * index.numel()
    assert found.flop == out.numel() * kernel**2
    average = functional.avg_pool2d(x, kernel, stride, padding, ceil_mode=ceil)
    assert cost("aten::avg_pool2d", x, *args, ceil, True, None).bytes_written == 4 * average.numel()


def test_upsampling_by_factor_and_by_size(cost):
    x = torch.empty(2, 3, 8, 8)
    assert cost("aten::upsample_nearest2d", x, [16, 24]).bytes_written == 2 * 3 * 16 * 24 * 4
    text = cost_of(
        parse_call(
            "aten::upsample_nearest2d",
            "[[2,3,8,8],[],[]]",
            '["float","","ScalarList"]',
            None,
            '["","","[2., 3.]"]',
        )
    )
    assert text.bytes_written == 2 * 3 * 16 * 24 * 4


def test_normalisations_read_and_write_once(cost):
    x, weight = torch.empty(32, 128, dtype=torch.bfloat16), torch.empty(128, dtype=torch.bfloat16)
    found = cost("aten::native_layer_norm", x, [128], weight, weight, 1e-5)
    assert found.bytes_read == x.nbytes + 2 * weight.nbytes
    assert found.bytes_written == x.nbytes + 2 * 32 * 4
    image, channel = torch.empty(2, 8, 4, 4), torch.empty(8)
    training = cost("aten::native_batch_norm", image, *[channel] * 4, True, 0.1, 1e-5)
    fixed = cost("aten::native_batch_norm", image, *[channel] * 4, False, 0.1, 1e-5)
    assert training.flop == 2 * fixed.flop
    assert fixed.bytes_written == image.nbytes
    assert cost("aten::_softmax", x, -1, False).num_bytes == 2 * x.nbytes


def test_indexing_touches_rows_not_tables(cost):
    table, indices = torch.empty(1_000_000, 64), torch.empty(32, dtype=torch.int64)
    found = cost("aten::embedding", table, indices, -1, False, False)
    assert (found.bytes_read, found.bytes_written) == (32 * 8 + 32 * 64 * 4, 32 * 64 * 4)
    assert cost("aten::index_select", table, 0, indices) == found
    picked = cost("aten::gather", torch.empty(100, 10), 1, torch.empty(100, 2, dtype=torch.int64), False)
    assert picked.bytes_written == 200 * 4
    added = cost("aten::scatter_add_", torch.empty(50), 0, indices, torch.empty(32))
    assert added.flop == 32
    assert added.bytes_written == 32 * 4


def test_copies_convert_and_repeat(cost):
    x = torch.empty(100)
    assert cost("aten::copy_", x.bfloat16(), x, False).num_bytes == 200 + 400
    assert cost("aten::copy_", x, torch.empty(1).expand(100), False).bytes_read == 4
    found = cost("aten::cat", [x, x], 0)
    assert found.num_bytes == 1600
    assert "list" in (found.assumption or "")
    assert cost("aten::constant_pad_nd", torch.empty(2, 3), [1, 2], 0).bytes_written == 4 * 2 * 6
    assert cost("aten::fill_", x, 0) == cost("aten::zero_", x)


def test_an_optimizer_reads_gradients_and_writes_the_rest(cost):
    lists = [[torch.empty(64, 8), torch.empty(8)]] * 4
    found = cost("aten::_fused_adamw_", *lists, [], [torch.empty(())] * 2, 1e-3)
    size = 4 * (64 * 8 + 8)
    assert (found.bytes_read, found.bytes_written) == (4 * size, 3 * size)
    each = cost("aten::_foreach_addcmul_", *lists[:3], 0.1)
    assert (each.bytes_read, each.bytes_written) == (3 * size, size)


def test_losses_write_a_number_or_every_element(cost):
    x = torch.empty(10, 5)
    assert cost("aten::mse_loss", x, x, 1).bytes_written == 4
    assert cost("aten::mse_loss", x, x, 0).bytes_written == x.nbytes
    target = torch.empty(10, dtype=torch.int64)
    assert cost("aten::nll_loss_forward", x, target, None, 1, -100).bytes_read == 10 * 8 + 10 * 4


def test_a_recurrent_layer_multiplies_its_weights_once_per_step(cost):
    x = torch.empty(7, 3, 8)
    weights = [torch.empty(64, 8), torch.empty(64, 16), torch.empty(64), torch.empty(64)]
    states = [torch.empty(1, 3, 16)] * 2
    assert (
        cost("aten::lstm", x, states, weights, True, 1, 0.0, True, False, False).flop == 2 * 7 * 3 * 64 * 24
    )


def test_a_transform_costs_n_log_n(cost):
    x = torch.empty(10, 64, dtype=torch.complex64)
    assert cost("aten::_fft_c2c", x, [1], 0, True).flop == 5 * 640 * 6


def test_generated_kernels_move_their_arguments():
    dims, types = "[[10,10],[10,10],[10,10],[]]", '["float","float","float","Scalar"]'
    cost = cost_of(parse_call("triton_poi_fused_add_cos_sin_0", dims, types))
    assert cost.num_bytes == 3 * 400
    assert cost.flop == 3 * 100
    assert cost.assumption


@pytest.mark.parametrize(
    ("name", "dims", "moved"),
    [
        ("triton_poi_fused_relu_0", "[[10,10],[]]", 2 * 400),
        ("triton_poi_fused_addmm_relu_0", "[[10,10],[10],[]]", 2 * 400 + 40),
        ("triton_per_fused__softmax_0", "[[10,10],[]]", 2 * 400),
        ("triton_poi_fused_zeros_0", "[[10,10],[]]", 400),
        ("triton_red_fused_mean_0", "[[10],[10,10],[]]", 440),
        ("triton_poi_fused_relu_0", "[[10,10],[10,10],[]]", 2 * 400),
    ],
)
def test_what_a_generated_kernel_changes_in_place_is_read_and_written(name, dims, moved):
    types = '["' + '","'.join(["float"] * (dims.count("[") - 2)) + '","Scalar"]'
    assert cost_of(parse_call(name, dims, types)).num_bytes == moved


@pytest.mark.parametrize("name", ["aten::sum", "aten::relu", "aten::embedding", "triton_poi_fused_add_0"])
def test_without_shapes_there_is_no_figure(name):
    with pytest.raises(NotRecordedError):
        cost_of(parse_call(name, None, None))
