"""Outputs beside those of a reference."""

from __future__ import annotations

import pytest
import torch

from pyrometer.numerics.comparison import shift_of


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


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_outputs_are_compared_by_all_their_numbers(layout):
    rows = [torch.ones(2, 3), torch.ones(4, 3)]
    one = torch.nested.nested_tensor(rows, layout=layout)
    other = torch.nested.nested_tensor([rows[0], rows[1] + 0.5], layout=layout)
    assert shift_of(one, one, reference="a", changed="b").within_tolerance
    assert shift_of(one, other, reference="a", changed="b").max_abs == pytest.approx(0.5)
