from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.workload.counting import UnitCounter, effective_units
from pyrometer.workload.inputs import Arguments

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=8)


def mask_of(lengths):
    width = max(*lengths, 1)
    return (torch.arange(width)[None] < torch.tensor(lengths)[:, None]).int()


@given(LENGTHS)
def test_a_mask_and_its_lengths_count_the_same(lengths):
    assert effective_units(mask_of(lengths))[0] == sum(lengths)
    if max(lengths) > 1:
        assert effective_units(torch.tensor(lengths)) == effective_units(mask_of(lengths))


@given(st.lists(LENGTHS, min_size=1, max_size=5))
def test_padding_and_units_of_many_steps(batches):
    counter = UnitCounter(None, "mask")
    for lengths in batches:
        counter.note(Arguments((), {"mask": mask_of(lengths)}))
    padded = sum(mask_of(lengths).numel() for lengths in batches)
    effective = sum(map(sum, batches))
    assert counter.units_per_step == pytest.approx(effective / len(batches))
    assert counter.padding_ratio == pytest.approx(1 - effective / padded)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_masks_of_any_dtype(dtype):
    assert effective_units(torch.tensor([[1, 0], [1, 1]]).to(dtype)) == (3, 4)


def test_noted_inputs_are_let_go_once_counted():
    counter = UnitCounter(lambda given: 2 * len(given), None)
    counter.note(Arguments((torch.zeros(3),), {}))
    counter.note(Arguments((torch.zeros(5),), {}))
    counter.count()
    assert counter._noted == []
    assert counter.units_per_step == 8


def test_without_any_tensor_a_step_is_one_unit():
    counter = UnitCounter(None, None)
    assert counter.units_per_step == 0
    counter.note(Arguments((3, torch.tensor(1.0)), {}))
    assert counter.units_per_step == 1
    assert counter.padding_ratio is None
