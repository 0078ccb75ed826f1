"""Outputs beside those of a reference."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.errors import InputError, UserProgramError
from pyrometer.numerics.comparison import compare_outputs, shift_of


def test_the_same_is_the_same():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))  # the random state is the same for both
    shift = compare_outputs(model, model, torch.randn(16, 8))
    assert (shift.max_abs, shift.cosine, shift.within_tolerance) == (0.0, 1.0, True)
    assert (shift.quantile_shift, shift.distribution_distance, shift.same_top) == (0.0, 0.0, 1.0)


def test_tolerance_follows_the_dtype_of_the_outputs():
    model, x = nn.Linear(8, 8), torch.randn(64, 8)
    shift = compare_outputs(model, lambda x: model(x).bfloat16(), x)
    assert shift.tolerance == 3e-2
    assert shift.within_tolerance
    assert not compare_outputs(model, lambda x: model(x).bfloat16(), x, dtype="float32").within_tolerance


def test_a_shift_is_told_in_deviations_of_the_reference():
    values = torch.randn(10_000)
    shift = shift_of(values, values + 0.5, reference="a", changed="b")
    assert shift.quantile_shift == pytest.approx(0.5, rel=0.05)
    assert shift.distribution_distance == pytest.approx(
        0.197, abs=0.02
    )  # of two normal distributions so far apart


def test_the_same_values_in_another_order_are_no_shift_but_an_error():
    values = torch.randn(1000)
    shift = shift_of(values, values.flip(0), reference="a", changed="b")
    assert shift.quantile_shift == pytest.approx(0.0, abs=1e-12)
    assert not shift.within_tolerance


def test_other_shapes_are_a_mismatch():
    shift = shift_of(torch.ones(2), torch.ones(3), reference="a", changed="b")
    assert "shape" in shift.mismatch
    assert shift.quantile_shift is None


def test_rows_whose_largest_entry_moved_are_counted():
    expected = torch.eye(4)
    shift = shift_of(expected, expected[[0, 1, 3, 2]], reference="a", changed="b")
    assert shift.same_top == 0.5


def test_buffers_and_random_state_are_as_before():
    model = nn.BatchNorm1d(4).train()
    x = torch.randn(8, 4)
    before, state = model.running_mean.clone(), torch.get_rng_state()
    compare_outputs(model, model, x)
    assert torch.equal(model.running_mean, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_failures_are_the_users_and_unknown_dtypes_are_refused():
    with pytest.raises(UserProgramError, match="the changed program raised RuntimeError"):
        compare_outputs(torch.relu, lambda x: x @ torch.ones(7), torch.ones(3))
    with pytest.raises(InputError, match="dtype: got 'half-ish'"):
        compare_outputs(torch.relu, torch.relu, torch.ones(3), dtype="half-ish")


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_outputs_are_compared_by_all_their_numbers(layout):
    rows = [torch.ones(2, 3), torch.ones(4, 3)]
    one = torch.nested.nested_tensor(rows, layout=layout)
    other = torch.nested.nested_tensor([rows[0], rows[1] + 0.5], layout=layout)
    assert shift_of(one, one, reference="a", changed="b").within_tolerance
    assert shift_of(one, other, reference="a", changed="b").max_abs == pytest.approx(0.5)
