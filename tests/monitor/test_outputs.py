"""NaN and infinities are found exactly, whatever shape an output has."""

from __future__ import annotations

import math

import pytest
import torch

from pyrometer.monitor.watching.outputs import OutputCheck

NAN, INF = math.nan, math.inf


def seen(*outputs):
    check = OutputCheck()
    for output in outputs:
        check.look(output)
    check.settle()
    return check.take()


@pytest.mark.parametrize(
    ("values", "nan", "infinite"),
    [([1.0, -2.0], 0, 0), ([1.0, NAN], 1, 0), ([INF, 1.0], 0, 1), ([-INF, 1.0], 0, 1), ([NAN, INF], 1, 0)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_what_is_not_finite_is_found(values, nan, infinite, dtype):
    found = seen(torch.tensor(values, dtype=dtype))
    assert (found.num_checked, found.num_nan, found.num_infinite) == (1, nan, infinite)
    assert (found.low, found.high) == ((-2.0, 1.0) if not nan and not infinite else (None, None))


def test_one_bad_value_among_many_is_enough():
    x = torch.randn(1_000_000)
    x[777_777] = NAN
    assert seen(x).num_nan == 1


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(2, 3),
        (torch.ones(3), torch.zeros(3, dtype=torch.int64), "text"),
        [torch.ones(1)],
        {"logits": torch.ones(2), "loss": None},
        torch.nn.Parameter(torch.ones(3)),
        torch.ones(4, 6).t(),
    ],
)
def test_tensors_are_found_in_what_models_return(output):
    assert seen(output).num_checked == 1


@pytest.mark.parametrize("output", [None, 3, "text", torch.tensor([1, 2]), torch.empty(0), object()])
def test_what_holds_no_floats_is_left_alone(output):
    assert seen(output).num_checked == 0


def test_values_are_a_sample_of_bounded_size():
    found = seen(*[torch.arange(10_000.0) for _ in range(50)])
    assert (found.num_checked, len(found.values), found.low, found.high) == (50, 256, 0.0, 9999.0)


def test_gradients_and_random_numbers_are_as_before():
    x = torch.randn(5, requires_grad=True)
    y = (x * 2).sum(dim=0, keepdim=True)
    before = torch.get_rng_state()
    seen(y)
    y.backward()
    assert torch.equal(x.grad, torch.full((5,), 2.0))
    assert torch.equal(torch.get_rng_state(), before)
