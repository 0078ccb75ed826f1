"""Which channels can be taken out, and that the model computes what it would with these channels at zero."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

from pyrometer.errors import InputError
from pyrometer.tuning.pruning.chains import chains_of
from pyrometer.tuning.pruning.channels import num_kept, remove_channels
from pyrometer.tuning.pruning.magnitude import prune_magnitude


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.Conv2d(32, 16, 3)
        self.head = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm(self.first(x))), 2)
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(self.second(x), 2), 1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        x = self.first(x)
        return x + self.second(x)


class ReadsWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        return self.second(self.first(x)) + self.first.weight.sum()


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(32, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.head(self.layer(self.layer(x)))


def tied():
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    model[2].weight = model[0].weight
    return model


def flat_linear():
    """Features of a sequence, flattened together: channels of the first layer are interleaved."""
    return nn.Sequential(nn.Linear(16, 16), nn.Flatten(), nn.Linear(64, 4))


def perceptron():
    return nn.Sequential(
        nn.Linear(24, 64), nn.BatchNorm1d(64), nn.GELU(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 5)
    )


def grouped():
    return nn.Sequential(nn.Conv2d(8, 16, 1), nn.ReLU(), nn.Conv2d(16, 16, 1, groups=2))


PRUNED = [
    (perceptron, (8, 24), 2),
    (Functional, (2, 3, 14, 14), 2),
    (lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)), (2, 5, 16), 1),
]


@pytest.mark.parametrize(("program", "shape", "num_chains"), PRUNED)
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_it_computes_what_it_would_with_these_channels_at_zero(program, shape, num_chains, share):
    torch.manual_seed(0)
    model, x = program().eval(), torch.randn(shape)
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.uniform_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    zeroed = copy.deepcopy(model)
    chains, twins = chains_of(model), chains_of(zeroed)
    assert len(chains) == num_chains
    with torch.no_grad():
        for chain, twin in zip(chains, twins, strict=True):
            before = chain.layer.weight.shape[0]
            kept = num_kept(before, share)
            remove_channels(chain, share)
            assert chain.layer.weight.shape[0] == kept < before
            # Of the twin, what the consumer reads of channels with the least norm is nothing.
            rows = twin.layer.weight.flatten(1).norm(dim=1)
            lost = rows.topk(before - kept, largest=False).indices
            columns = (lost[:, None] * twin.width + torch.arange(twin.width)).flatten()
            twin.consumer.weight[:, columns] = 0.0
        torch.testing.assert_close(model(x), zeroed(x))
    assert sum(p.numel() for p in model.parameters()) < sum(p.numel() for p in zeroed.parameters())


@pytest.mark.parametrize("program", [Residual, ReadsWeight, Twice, tied, flat_linear, grouped])
def test_what_others_read_is_left_alone(program):
    assert chains_of(program()) == []


def test_a_model_whose_flow_depends_on_values_has_no_chains():
    class Branches(nn.Sequential):
        def forward(self, x):
            return super().forward(x) if x.sum() > 0 else x

    assert chains_of(Branches(nn.Linear(4, 4), nn.Linear(4, 4))) == []


def test_a_model_with_a_pruning_mask_of_torch_is_left_alone():
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    prune.l1_unstructured(model[0], "weight", 0.5)
    assert chains_of(model) == []


def test_the_smallest_weights_of_all_layers_together_become_zero_in_a_copy():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with torch.no_grad():
        model[0].weight *= 0.01
    before = [parameter.clone() for parameter in model.parameters()]
    pruned = prune_magnitude(model, 0.5)
    assert pruned.zeros["0.weight"] == pytest.approx(0.625, abs=0.01)
    assert pruned.zeros["2.weight"] == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert pruned.model[0].weight.shape == model[0].weight.shape


@pytest.mark.parametrize("share", [0, 1, -0.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="legal is above 0"):
        prune_magnitude(nn.Linear(4, 4), share)


def test_a_model_without_layers_cannot_be_pruned():
    with pytest.raises(InputError, match="nothing to prune"):
        prune_magnitude(nn.ReLU(), 0.5)
