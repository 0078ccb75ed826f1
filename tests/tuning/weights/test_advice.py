"""Weights that could be one, and weights that begin at an unfit scale."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.tuning.weights.initialising import check_initialisation
from pyrometer.tuning.weights.sharing import find_shared_weights


def test_equal_weights_are_told_with_what_tying_them_saves():
    model = nn.ModuleDict({"embed": nn.Embedding(50, 8), "head": nn.Linear(8, 50), "other": nn.Linear(8, 50)})
    model["head"].weight = nn.Parameter(model["embed"].weight.detach().clone())
    (group,) = find_shared_weights(model)
    assert group.names == ("embed.weight", "head.weight")
    assert (group.tied, group.saved_bytes) == (False, 50 * 8 * 4)


def test_tied_weights_are_told_as_tied():
    model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50))
    model[1].weight = model[0].weight
    (group,) = find_shared_weights(model)
    assert (group.tied, group.saved_bytes) == (True, 0)


def test_fresh_models_have_nothing_in_common_though_norms_and_biases_are_constant():
    assert (
        find_shared_weights(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.LayerNorm(8), nn.Linear(8, 8)))
        == []
    )


def test_weights_of_other_dtypes_are_read_too():
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)).bfloat16()
    model[1].load_state_dict(model[0].state_dict())
    assert find_shared_weights(model)[0].saved_bytes == 128


FITTING = {
    nn.ReLU: lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="relu"),
    nn.GELU: lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="relu"),
    nn.Tanh: lambda weight: nn.init.xavier_normal_(weight, gain=5 / 3),
    nn.Sigmoid: nn.init.xavier_normal_,
    nn.SELU: lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="linear"),
}


@pytest.mark.parametrize("activation", FITTING)
@pytest.mark.parametrize("layer", [lambda: nn.Linear(128, 128), lambda: nn.Conv2d(16, 16, 3)])
def test_what_it_advises_satisfies_it_and_weights_a_third_as_large_do_not(activation, layer):
    torch.manual_seed(0)
    model = nn.Sequential(layer(), activation())
    FITTING[activation](model[0].weight)
    assert check_initialisation(model) == []
    with torch.no_grad():
        model[0].weight /= 3
    (told,) = check_initialisation(model)
    assert told.layer == "0"
    assert "too small" in told.advice
    assert "torch.nn.init." in told.advice


def test_the_order_of_calls_counts_and_not_that_of_names():
    class Swapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            return self.last(torch.relu(self.first(x)))

    assert [told.layer for told in check_initialisation(Swapped())] == ["first"]


def test_a_norm_in_between_sets_the_scale_anew():
    assert check_initialisation(nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())) == []


def test_of_a_model_that_cannot_be_traced_its_sequences_are_read():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())

        def forward(self, x):
            return self.body(x) if x.sum() > 0 else x

    assert [told.layer for told in check_initialisation(Branches())] == ["body.0"]
