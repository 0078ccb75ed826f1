"""Batches of like lengths: every sample once, in a new order each epoch, shared among ranks."""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.sampler import BucketBatchSampler, batch_padding

LENGTHS = st.lists(st.integers(1, 100), min_size=1, max_size=60)


@given(
    lengths=LENGTHS,
    batch_size=st.integers(1, 9),
    num_buckets=st.integers(1, 6),
    shuffle=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_every_sample_comes_exactly_once_per_epoch(lengths, batch_size, num_buckets, shuffle, epoch):
    sampler = BucketBatchSampler(lengths, batch_size=batch_size, num_buckets=num_buckets, shuffle=shuffle)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert sorted(sample for batch in batches for sample in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert len(batches) == len(sampler)


@given(lengths=LENGTHS, max_tokens=st.integers(100, 400))
def test_no_batch_holds_more_tokens_than_allowed(lengths, max_tokens):
    batches = list(BucketBatchSampler(lengths, max_tokens=max_tokens))
    assert sorted(sample for batch in batches for sample in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) * max(lengths[sample] for sample in batch) <= max_tokens


@given(lengths=LENGTHS, batch_size=st.integers(1, 6), world_size=st.integers(1, 4), drop_last=st.booleans())
def test_ranks_share_an_epoch_in_equal_parts(lengths, batch_size, world_size, drop_last):
    ranks = [
        list(
            BucketBatchSampler(
                lengths, batch_size=batch_size, drop_last=drop_last, rank=rank, world_size=world_size
            )
        )
        for rank in range(world_size)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    seen = Counter(sample for batches in ranks for batch in batches for sample in batch)
    if drop_last:
        assert set(seen.values()) <= {1}
        assert all(len(batch) == batch_size for batches in ranks for batch in batches)
    else:
        assert set(seen) == set(range(len(lengths)))
        distinct = {tuple(batch) for batches in ranks for batch in batches}
        repeated = sum(len(batches) for batches in ranks) - len(distinct)
        assert repeated < world_size


def test_the_order_changes_with_the_epoch_and_the_seed_and_with_nothing_else():
    lengths = [random.Random(0).randint(1, 100) for _ in range(200)]

    def order(epoch, seed):
        sampler = BucketBatchSampler(lengths, batch_size=8, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    torch.manual_seed(1)
    first = order(0, 0)
    state = torch.get_rng_state()
    assert order(0, 0) == first
    assert torch.equal(state, torch.get_rng_state())
    assert order(1, 0) != first
    assert order(0, 9) != first


def test_padding_is_less_than_at_random():
    rng = random.Random(0)
    lengths = [min(int(rng.lognormvariate(4, 0.8)) + 1, 1000) for _ in range(2000)]
    sampler = BucketBatchSampler(lengths, batch_size=16)
    report = sampler.report()
    assert report.padding_after == pytest.approx(batch_padding(lengths, list(sampler)))
    assert report.padding_after < 0.35 * report.padding_before
    assert report.effective_gain == pytest.approx((1 - report.padding_after) / (1 - report.padding_before))
    assert report.effective_gain > 1.5


def test_a_loader_takes_it():
    data = [torch.zeros(length) for length in (3, 9, 3, 9)]
    loader = DataLoader(data, batch_sampler=BucketBatchSampler([3, 9, 3, 9], batch_size=2, num_buckets=2))
    assert sorted(tuple(batch.shape) for batch in loader) == [(2, 3), (2, 9)]


@pytest.mark.parametrize(
    ("settings_given", "told"),
    [
        ({}, "give one of them"),
        ({"batch_size": 2, "max_tokens": 9}, "give one of them"),
        ({"batch_size": 0}, "at least 1"),
        ({"max_tokens": 8}, "sample 1 has 9, more than 8"),
        ({"batch_size": 2, "edges": [4]}, "sample 1 has 9, more than 4"),
        ({"batch_size": 2, "rank": 2, "world_size": 2}, "rank: got 2 of 2"),
    ],
)
def test_what_cannot_be_batched_is_told(settings_given, told):
    with pytest.raises(InputError, match=told):
        BucketBatchSampler([3, 9], **settings_given)
    with pytest.raises(InputError, match="at least one"):
        BucketBatchSampler([], batch_size=1)


@pytest.mark.parametrize("bad", [1.5, float("nan"), float("inf"), "a", None, True, 0, -3, [2]])
@pytest.mark.parametrize("given", [list, tuple])
def test_a_length_that_is_no_whole_number_is_named_with_its_place(bad, given):
    with pytest.raises(InputError, match=rf"lengths: number 2 is {re.escape(repr(bad))}; legal are whole"):
        BucketBatchSampler(given([3, 4, bad, 9]), batch_size=2)


@pytest.mark.parametrize(
    "given", [torch.tensor, np.array, lambda values: [np.int32(value) for value in values]]
)
def test_lengths_of_any_kind_of_whole_number_are_taken(given):
    assert sorted(map(sorted, BucketBatchSampler(given([3, 9, 3, 9]), batch_size=2, num_buckets=2))) == [
        [0, 2],
        [1, 3],
    ]
    with pytest.raises(InputError, match=r"number 1 is 2\.5"):
        BucketBatchSampler(given([3, 2.5]) if given in {torch.tensor, np.array} else [3, 2.5], batch_size=2)


def test_batches_of_a_loader_have_the_lengths_of_the_edges():
    generator = random.Random(0)
    lengths = [generator.randint(3, 40) for _ in range(50)]
    samples = [
        {"ids": torch.full((size,), size), "x": torch.ones(size, 2), "label": torch.tensor(size)}
        for size in lengths
    ]
    sampler = BucketBatchSampler(lengths, batch_size=4, num_buckets=3, pad_value=-1)
    batches = list(DataLoader(samples, batch_sampler=sampler, collate_fn=sampler.collate))
    assert {batch["x"].shape[1] for batch in batches} <= set(sampler.edges)
    for batch in batches:
        assert batch["ids"].shape == batch["x"].shape[:2]
        for row, size in enumerate(batch["label"].tolist()):
            assert set(batch["ids"][row, :size].tolist()) == {size}
            assert set(batch["ids"][row, size:].tolist()) <= {-1}


def test_samples_without_a_length_or_beyond_the_last_edge_are_refused():
    sampler = BucketBatchSampler([2, 3], batch_size=2, edges=[4])
    with pytest.raises(InputError, match="length 5, beyond the last edge, 4"):
        sampler.collate([torch.ones(5)])
    with pytest.raises(InputError, match="got int without a tensor"):
        sampler.collate([3])
