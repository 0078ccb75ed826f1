"""What is right for one call's friendly values only is found at the first padded call."""

from __future__ import annotations

import pytest
import torch
from representative import every
from torch import nn
from torch.nn import functional

from pyrometer.tuning.shapes.axes import declare_axes
from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.checking import PaddingError
from pyrometer.tuning.shapes.hostile import Hostile


class PointNet(nn.Module):
    """A feature is wrong only where its bias is more than all real values."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 8)

    def forward(self, x):
        return self.layer(x).relu().amax(1)


class Embedded(nn.Module):
    """The largest over words, where number 0 is a word like any other."""

    def __init__(self, reduce):
        super().__init__()
        self.words = nn.Embedding(50, 8)
        nn.init.zeros_(self.words.weight.data[0])
        self.reduce = reduce

    def forward(self, x):
        return self.reduce(self.words(x))


def positive(*shape):
    """Values with which zeros do no harm."""
    return torch.rand(*shape) + 0.5


FRIENDLY = {
    "max": lambda: (lambda x: x.max(1).values, positive(2, 7, 4)),
    "amax": lambda: (lambda x: x.amax(1), positive(2, 7, 4)),
    "cummax": lambda: (lambda x: torch.cummax(x, 1).values[:, -1], positive(2, 7, 4)),
    "min": lambda: (lambda x: x.min(1).values, -positive(2, 7, 4)),
    "argmax": lambda: (lambda x: x.argmax(1), positive(2, 7, 4)),
    "sort": lambda: (lambda x: x.sort(1, descending=True).values[:, :3], positive(2, 7, 4)),
    "topk": lambda: (lambda x: x.topk(2, dim=1).values, positive(2, 7, 4)),
    "logsumexp": lambda: (lambda x: torch.logsumexp(60 * x, 1), positive(2, 7, 4)),
    "softmax": lambda: (lambda x: (60 * x).softmax(1), positive(2, 7, 4)),
    "max_pool": lambda: (lambda x: functional.max_pool1d(x, 3, 1, 1), positive(2, 4, 7)),
    "points": lambda: (PointNet(), 8 * torch.randn(2, 15, 4)),
    "threshold": lambda: (lambda x: torch.where(x > 2.5, x.mean(1, keepdim=True), x), positive(2, 7, 4)),
    "words": lambda: (Embedded(lambda h: h.amax(1)), torch.randint(1, 50, (2, 14))),
    "zeros": lambda: (lambda x: x.amax(1), torch.zeros(2, 7, 4)),
    "rows": lambda: (lambda x: x.flatten().max(), positive(7, 2)),
}


@pytest.mark.parametrize("case", every(3, sorted(FRIENDLY)))
def test_values_that_padding_happens_not_to_harm_do_not_hide_it(case):
    torch.manual_seed(1)
    model, x = FRIENDLY[case]()
    dim = 2 if case == "max_pool" else 0 if case == "rows" else 1
    shape = list(x.shape)
    shape[dim] = 16
    settings = {"sample": [{"x": shape}], "backend": "eager"}
    ShapeBuckets(model, {"x": {dim: "n"}}, hostile_values=False, **settings)(x)  # these values tell nothing
    runner = ShapeBuckets(model, {"x": {dim: "n"}}, **settings)
    state = torch.get_rng_state()
    with pytest.raises(PaddingError, match="changes the result"):
        runner(x)
    assert torch.equal(state, torch.get_rng_state())
    assert runner.statistics().num_graphs == 0


def test_it_is_told_with_which_values_and_what_to_do_where_those_never_come():
    settings = {"sample": [{"x": (2, 8)}], "backend": "eager"}

    def largest(x):
        return torch.relu(x).sum(1) + x.amax(1)

    with pytest.raises(PaddingError, match=r"where the values are negated.*amax reduces") as failure:
        ShapeBuckets(largest, {"x": [1]}, **settings)(positive(2, 5))
    assert "pass hostile_values=False" in str(failure.value)
    trusting = ShapeBuckets(largest, {"x": [1]}, hostile_values=False, **settings)
    x = positive(2, 5)
    torch.testing.assert_close(trusting(x), largest(x))


EXACT = {
    "sum": (lambda x: x.sum(1), {}),
    "bilinear": (lambda x: (x.transpose(1, 2) @ x).relu(), {}),
    "norm": (lambda x: x.norm(dim=1), {}),
    "bounded": (lambda x: torch.relu(x).amax(1), {}),
    "product": (lambda x: x.prod(1), {"x": 1.0}),
    "max, padded for it": (lambda x: x.amax(1), {"x": float("-inf")}),
    "shares": (lambda x: x / x.abs().sum(1, keepdim=True), {}),
    "logarithms": (lambda x: x.log().sum(1), {"x": 1.0}),
    "edge": (lambda x: functional.conv1d(x.transpose(1, 2), torch.ones(4, 4, 3).to(x), padding=1), {}),
    "standardised": (lambda x: functional.layer_norm(x, (4,)), {}),
}


@pytest.mark.parametrize("dtype", every(2, [torch.float32, torch.float16]))
@pytest.mark.parametrize("case", sorted(EXACT))
def test_what_is_right_for_its_padding_whatever_the_values_passes(case, dtype):
    torch.manual_seed(2)
    model, pad_values = EXACT[case]
    runner = ShapeBuckets(
        model, {"x": {1: "n"}}, sample=[{"x": (2, 16, 4)}], backend="eager", pad_values=pad_values
    )
    for size in (7, 9, 12):
        x = positive(2, size, 4).to(dtype)
        torch.testing.assert_close(runner(x), model(x), rtol=1e-2, atol=1e-2)


def test_a_result_that_rests_on_what_the_padding_holds_is_told_and_checked_more_often():
    settings = {"sample": [{"x": (2, 16)}], "backend": "eager"}
    total = ShapeBuckets(lambda x: x.sum(1), {"x": [1]}, **settings)
    alone = ShapeBuckets(lambda x: x.exp(), {"x": [1]}, **settings)
    for _ in range(20):
        total(torch.randn(2, 9))
        alone(torch.randn(2, 9))
    assert total.statistics().checks == 5
    assert "depends on what the padding holds" in total.statistics().notes[0]
    assert len(total.statistics().notes) == 1
    assert alone.statistics().checks == 1
    assert alone.statistics().notes == []


def test_masks_lengths_and_indices_stay_legal():
    given = {
        "ids": torch.tensor([[3, 9, 7]]),
        "x": torch.tensor([[0.5, -1.0, 2.0]]),
        "mask": torch.tensor([[1.0, 1.0, 0.0]]),
        "bias": torch.tensor([[0.0, 0.0, -1e9]]),
        "valid": torch.tensor([[True, True, False]]),
        "small": torch.tensor([[1, 2, 1]], dtype=torch.uint8),
    }

    def model(ids, x, mask, bias, valid, small):  # noqa: PLR0917 - one of each kind
        raise AssertionError

    axes = declare_axes(model, {name: {1: "n"} for name in given})
    seen = list(Hostile(axes, frozenset(), ((), given)).calls(thorough=True))
    assert len(seen) == 9
    for _, (_, values) in seen:
        for name in ("mask", "bias", "valid"):
            assert values[name] is given[name]
        for name in ("ids", "small"):
            assert set(values[name].flatten().tolist()) <= set(given[name].flatten().tolist())
            assert values[name].dtype == given[name].dtype
        assert values["x"].shape == (1, 3)
        assert not torch.equal(values["x"], given["x"])
    assert given["x"].tolist() == [[0.5, -1.0, 2.0]]


def test_weights_that_look_like_a_mask_stay_one():
    def pooled(x, weights):
        weights = weights[..., None]
        return (x + (1 - weights) * -1e4).softmax(1).mul(x).sum(1)

    runner = ShapeBuckets(
        pooled,
        {"x": {1: "n"}, "weights": {1: "n"}},
        sample=[{"x": (2, 16, 4), "weights": (2, 16)}],
        backend="eager",
    )
    x, weights = torch.randn(2, 9, 4), torch.ones(2, 9)
    torch.testing.assert_close(runner(x, weights), pooled(x, weights))


class OddError(Exception):
    """Of a model's own."""


@pytest.mark.parametrize("error", [ValueError, OddError])
def test_values_that_a_model_cannot_take_are_no_reason_to_refuse_it(error):
    def picky(x):
        if not bool((x >= 0).all()):
            raise error
        return x.sqrt().sum(1)

    runner = ShapeBuckets(picky, {"x": [1]}, sample=[{"x": (2, 16)}], backend="eager")
    x = positive(2, 9)
    torch.testing.assert_close(runner(x), picky(x))


def test_buffers_and_modes_are_those_of_one_call():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            return x.sum(1)

    model = Counting()
    runner = ShapeBuckets(model, {"x": [1]}, sample=[{"x": (2, 16)}], backend="eager")
    for _ in range(3):
        runner(torch.randn(2, 9))
    assert model.count == 3
