"""How far an output is from its reference, and whether that can be said at all."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import pyrometer as pm
from pyrometer.bench.matrix.numerics import (
    TOLERANCES,
    numeric_error,
    output_error,
    tolerance_for,
    with_fixed_inputs,
)

NAN, INF = math.nan, math.inf
T = torch.tensor


def test_equal_outputs_have_no_error():
    output = {"boxes": torch.randn(4, 3), "scores": [torch.rand(2), 0.5], "name": "x", "none": None}
    error = numeric_error(output, output, 1e-4)
    assert (error.max_abs, error.max_rel, error.cosine) == (0.0, 0.0, 1.0)
    assert error.within_tolerance
    assert error.num_values == 4 * 3 + 2 + 1


@given(
    values=st.lists(st.floats(-100, 100), min_size=1, max_size=20),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    off=st.floats(1e-7, 0.5),
)
def test_the_error_is_relative_to_the_largest_magnitude(values, scale, off):
    expected = T([*values, 100.0], dtype=torch.float64) * scale
    actual = expected.clone()
    actual[0] += 100 * scale * off
    error = numeric_error(actual, expected, tolerance=off * 1.01)
    assert error.max_rel == pytest.approx(off, rel=1e-6)
    assert error.max_abs == pytest.approx(100 * scale * off, rel=1e-6)
    assert error.within_tolerance
    assert not numeric_error(actual, expected, tolerance=off * 0.99).within_tolerance


def test_the_tensor_that_is_furthest_off_counts():
    error = numeric_error((torch.ones(9), T([2.0, 4.2])), (torch.ones(9), T([2.0, 4.0])), 1e-2)
    assert error.max_rel == pytest.approx(0.05)
    assert not error.within_tolerance


def test_noise_on_zeros_is_measured_by_the_other_tensors():
    assert numeric_error((T([1e-9]), T([5.0])), (T([0.0]), T([5.0])), 1e-4).within_tolerance
    assert not numeric_error((T([1.0]), T([5.0])), (T([0.0]), T([5.0])), 1e-4).within_tolerance


def test_another_direction_shows_in_the_cosine():
    assert numeric_error(T([1.0, 0.0]), T([0.0, 1.0]), 1e-4).cosine == pytest.approx(0.0)
    assert numeric_error(T([0.0, 0.0]), T([0.0, 1.0]), 1e-4).cosine == 0.0


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        (T([1.0, NAN]), T([1.0, 2.0]), "NaN or infinity"),
        (T([1.0, 2.0]), T([1.0, NAN]), "NaN or infinity"),
        (T([1.0, INF]), T([1.0, -INF]), "NaN or infinity"),
        (torch.ones(2, 3), torch.ones(3, 2), "shape (2, 3) for (3, 2)"),
        ((torch.ones(1),), [torch.ones(1)], "another structure"),
        ({"a": torch.ones(1)}, {"b": torch.ones(1)}, "another structure"),
        ([torch.ones(1)] * 2, [torch.ones(1)], "another structure: 2 values for 1"),
    ],
)
def test_what_cannot_be_compared_is_a_mismatch(actual, expected, said):
    error = numeric_error(actual, expected, 1.0)
    assert said in error.mismatch
    assert not error.within_tolerance


def test_whole_numbers_are_the_same_or_wrong_however_near():
    """Of the classes 16,000 and 15,999 neither is nearly the other; of two pixels one may be a little brighter."""
    error = numeric_error((T([0.5]), torch.tensor([16_000, 7])), (T([0.5]), torch.tensor([15_999, 7])), 3e-2)
    assert error.max_rel == 0.0
    assert error.different == "1 of 2 whole numbers differ"
    assert not error.within_tolerance
    pixels = torch.tensor([200, 100], dtype=torch.uint8)
    assert numeric_error(pixels + 1, pixels, 3e-2).within_tolerance


def test_equal_nan_and_infinity_are_equal():
    error = numeric_error(T([NAN, INF, 1.0]), T([NAN, INF, 1.0]), 1e-4)
    assert error.within_tolerance
    assert error.num_values == 1


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.bfloat16])
def test_every_dtype_can_be_compared(dtype):
    tensor = torch.ones(3).to(dtype)
    assert numeric_error(tensor, tensor, 0.0).within_tolerance


def test_sparse_outputs_can_be_compared():
    assert numeric_error(torch.eye(3).to_sparse(), torch.eye(3).to_sparse(), 0.0).num_values == 9


def test_tolerances_grow_with_the_round_off():
    eps = {"float32": 2**-23, "tf32": 2**-10, "float16": 2**-10, "bfloat16": 2**-7}
    for name, one in eps.items():
        assert one < TOLERANCES[name] < 1000 * one
    assert tolerance_for("float32", torch.device("cuda")) == TOLERANCES["tf32"]
    assert tolerance_for("float8_e4m3fn", torch.device("cpu")) == TOLERANCES["bfloat16"]


def small(**changes) -> pm.Inference:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return pm.Inference(net, torch.randn(8, 16), **changes)


def test_a_variant_is_compared_on_the_same_inputs():
    work = small()
    same = output_error(work, work, 1e-4)
    assert same.max_abs == 0.0
    coarse = output_error(work.variant(dtype="bfloat16"), work, TOLERANCES["bfloat16"])
    assert 1e-4 < coarse.max_rel < TOLERANCES["bfloat16"]
    assert coarse.within_tolerance
    assert not output_error(work.variant(dtype="bfloat16"), work, 1e-4).within_tolerance


def test_fresh_inputs_are_drawn_once_for_all():
    work = small()
    drawn = iter(range(100))
    work.inputs = lambda: torch.full((8, 16), float(next(drawn)))
    assert not output_error(work.variant(dtype="float64"), work, 1e-4)
    fixed = with_fixed_inputs(work)
    assert output_error(fixed.variant(dtype="float64"), fixed, 1e-4).within_tolerance
    assert callable(work.inputs)


def test_random_outputs_are_not_judged():
    class Noisy(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    work = pm.Inference(Noisy(), torch.zeros(4))
    assert output_error(work.variant(dtype="float64"), work, 1e-4) is None


def test_outputs_without_numbers_are_not_judged():
    work = pm.Call(lambda: "text")
    assert output_error(work, work, 1e-4) is None


def training(dropout: float = 0.0, shuffle: bool = False) -> pm.Training:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(dropout), nn.Linear(8, 1))
    data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=shuffle)
    return pm.Training(net, nn.functional.mse_loss, torch.optim.SGD(net.parameters(), lr=0.1), loader)


def test_training_is_compared_over_several_updates():
    work = with_fixed_inputs(training(shuffle=True))
    error = output_error(work.variant(dtype="bfloat16"), work, TOLERANCES["bfloat16"])
    assert error.num_values == 3
    assert error.max_rel > 0
    assert output_error(work.variant(memory_format="contiguous"), work, 1e-4).within_tolerance


def test_training_with_dropout_is_not_judged():
    work = with_fixed_inputs(training(dropout=0.5))
    assert output_error(work.variant(dtype="float64"), work, 1e-4) is None


def test_the_model_is_left_as_it_was():
    work = training()
    before = {name: value.clone() for name, value in work.parts.model.state_dict().items()}
    output_error(work.variant(dtype="bfloat16"), work, 1e-4)
    after = work.parts.model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
