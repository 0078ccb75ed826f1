"""Packing loses no token, mixes no sequences, and needs few rows."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.packing import pack_sequences

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=40)


@given(lengths=LENGTHS, capacity=st.integers(40, 80))
def test_every_sequence_lies_whole_in_one_row(lengths, capacity):
    packing = pack_sequences(lengths, capacity)
    pieces = sorted((piece.sequence, piece.start, piece.length) for row in packing.rows for piece in row)
    assert pieces == [(number, 0, length) for number, length in enumerate(lengths)]
    assert all(sum(piece.length for piece in row) <= capacity for row in packing.rows)
    report = packing.report()
    assert report.lower_bound_rows <= report.num_rows
    assert report.num_rows * capacity * (1 - report.padding_after) == pytest.approx(sum(lengths))


@given(lengths=st.lists(st.integers(1, 10), min_size=1, max_size=6), capacity=st.integers(10, 14))
def test_few_sequences_take_as_few_rows_as_can_be(lengths, capacity):
    def fits(num_rows):
        return any(
            all(
                sum(length for length, row in zip(lengths, chosen, strict=True) if row == own) <= capacity
                for own in range(num_rows)
            )
            for chosen in itertools.product(range(num_rows), repeat=len(lengths))
        )

    best = next(number for number in range(1, len(lengths) + 1) if fits(number))
    assert len(pack_sequences(lengths, capacity).rows) == best


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=20), capacity=st.integers(4, 20))
def test_tokens_come_back_as_they_were_also_when_split(lengths, capacity):
    sequences = [torch.arange(length) + 1000 * number for number, length in enumerate(lengths)]
    packing = pack_sequences(lengths, capacity, split=True)
    packed = packing.tokens(sequences, pad_value=-1)
    for ours, theirs in zip(packing.unpack(packed), sequences, strict=True):
        assert torch.equal(ours, theirs)
    assert int((packed >= 0).sum()) == sum(lengths)
    real = packing.segment_ids() > 0
    assert torch.equal(real, packed >= 0)
    assert torch.equal(packing.position_ids()[real], packed[real] % 1000)


def test_boundaries_and_segments_tell_the_same():
    packing = pack_sequences([5, 3, 4, 2, 6], 8)
    ids = packing.segment_ids().flatten()
    bounds = packing.cu_seqlens().tolist()
    assert bounds[0] == 0
    assert bounds[-1] == len(packing.rows) * 8
    for start, end in itertools.pairwise(bounds):
        assert len(set(ids[start:end].tolist())) == 1
    assert packing.cu_seqlens().dtype == torch.int32


@pytest.mark.parametrize("causal", [False, True])
def test_attention_over_packed_rows_is_that_over_each_sequence(causal):
    torch.manual_seed(0)
    lengths = [5, 3, 4, 2, 6]
    sequences = [torch.randn(length, 8) for length in lengths]
    packing = pack_sequences(lengths, 8)
    x = packing.tokens(sequences)
    mask = packing.segment_mask(causal=causal)
    packed = functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    assert not packed.isnan().any()
    for ours, own in zip(packing.unpack(packed), sequences, strict=True):
        alone = functional.scaled_dot_product_attention(own[None], own[None], own[None], is_causal=causal)[0]
        torch.testing.assert_close(ours, alone)


def test_padding_before_is_that_of_batches_in_the_given_order():
    report = pack_sequences([2, 8, 4, 4], 8).report(batch_size=2)
    assert report.padding_before == pytest.approx(1 - 18 / 24)
    assert report.padding_after == pytest.approx(1 - 18 / 24)
    assert report.effective_gain == pytest.approx(1.0)


def test_what_is_too_long_is_refused_unless_it_may_be_split():
    with pytest.raises(InputError, match="sequence 1 has 9 tokens, more than a row of 8"):
        pack_sequences([3, 9], 8)
    assert sum(len(row) for row in pack_sequences([3, 9], 8, split=True).rows) == 3
    with pytest.raises(InputError, match="there must be at least one"):
        pack_sequences([], 8)
    with pytest.raises(InputError, match="number 0 is 0; legal are whole numbers of at least 1"):
        pack_sequences([0], 8)
    with pytest.raises(InputError, match=r"number 1 is 3\.5; legal are whole numbers"):
        pack_sequences([3, 3.5], 8)
    with pytest.raises(InputError, match="capacity: got 0; legal are whole numbers from 1 on"):
        pack_sequences([3], 0)
