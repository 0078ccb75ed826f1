"""Attention: FLOP as torch counts them without a mask; with one, only of the pairs that it leaves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import flop_counter

from pyrometer.trace.costs.attention import visible_pairs
from pyrometer.trace.costs.call import NotRecordedError

size = st.integers(1, 24)


@given(queries=size, keys=size)
def test_pairs_that_a_causal_mask_leaves(queries, keys):
    ones = torch.ones(queries, keys)
    assert visible_pairs(queries, keys, causal=True) == int(ones.tril().sum())
    assert visible_pairs(queries, keys, causal=True, bottom_right=True) == int(
        ones.tril(keys - queries).sum()
    )
    assert visible_pairs(queries, keys, causal=False) == queries * keys


@given(b=st.integers(1, 3), h=st.integers(1, 4), s=size, t=size, d=size, dv=size)
def test_forward_counts_as_torch_counts(*, cost, b, h, s, t, d, dv):
    q, k, v = torch.empty(b, h, s, d), torch.empty(b, h, t, d), torch.empty(b, h, t, dv)
    wanted = flop_counter.sdpa_flop_count(q.shape, k.shape, v.shape)
    assert cost("aten::_scaled_dot_product_flash_attention", q, k, v, 0.0, False).flop == wanted
    assert (
        cost("aten::_scaled_dot_product_efficient_attention", q, k, v, None, True, 0.0, False).flop == wanted
    )
    swapped = [x.transpose(1, 2) for x in (q, k, v)]
    found = cost("aten::_flash_attention_forward", *swapped, None, None, s, t, 0.0, False, False)
    assert found.flop == wanted
    assert found.bytes_read == 4 * (q.numel() + k.numel() + v.numel())
    assert found.bytes_written == 4 * b * h * s * dv


@given(b=st.integers(1, 3), h=st.integers(1, 4), s=size, t=size, d=size, dv=size)
def test_backward_counts_as_torch_counts(*, cost, b, h, s, t, d, dv):
    q, k, v = torch.empty(b, h, s, d), torch.empty(b, h, t, d), torch.empty(b, h, t, dv)
    grad = torch.empty(b, h, s, dv)
    wanted = flop_counter.sdpa_backward_flop_count(grad.shape, q.shape, k.shape, v.shape)
    args = (grad, q, k, v, grad, torch.empty(b, h, s))
    found = cost("aten::_scaled_dot_product_flash_attention_for_cpu_backward", *args, 0.0, False)
    assert found.flop == wanted


def test_a_causal_mask_halves_long_sequences(cost):
    q = torch.empty(1, 1, 1000, 64)
    full = cost("aten::_scaled_dot_product_flash_attention", q, q, q, 0.0, False).flop
    causal = cost("aten::_scaled_dot_product_flash_attention", q, q, q, 0.0, True).flop
    assert causal / full == pytest.approx(0.5, rel=2e-3)


def test_grouped_heads_count_the_queries(cost):
    q, k = torch.empty(2, 8, 16, 32), torch.empty(2, 2, 16, 32)
    assert (
        cost("aten::scaled_dot_product_attention", q, k, k, None, 0.0, False).flop == 2 * 2 * 8 * 16 * 16 * 64
    )


def test_packed_batches_do_not_tell_their_lengths(cost):
    q, lengths = torch.empty(100, 8, 64), torch.empty(5, dtype=torch.int32)
    with pytest.raises(NotRecordedError, match="lengths"):
        cost("aten::_flash_attention_forward", q, q, q, lengths, lengths, 30, 30, 0.0, False, False)
