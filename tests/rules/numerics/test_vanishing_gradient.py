from __future__ import annotations

from torch import nn


class Block(nn.Module):
    """What the advice says."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return x + nn.functional.gelu(self.layer(self.norm(x)))


def sigmoids(scale=1.0):
    layers = [layer for _ in range(12) for layer in (nn.Linear(8, 8), nn.Sigmoid())]
    model = nn.Sequential(*layers, nn.Linear(8, 4))
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.weight.data *= scale
    return model


def test_sigmoids_one_after_the_other_are_found_and_the_advice_mends_it(findings, watched, training):
    (finding,) = findings("PYR704", watched(training(sigmoids())))
    assert "times smaller than the last ones" in finding.message
    assert finding.evidence["last_over_first_layers"] > 1e4
    assert finding.where.module == "0"
    model = nn.Sequential(*[Block() for _ in range(12)], nn.Linear(8, 4))
    assert findings("PYR704", watched(training(model))) == []


def test_saturated_activations_are_named(findings, watched, training):
    (finding,) = findings("PYR704", watched(training(sigmoids(scale=200.0))))
    assert "of the values of sigmoid in " in finding.message


def test_layers_behind_units_that_are_never_active_are_found(findings, watched, training):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    nn.init.constant_(model[0].bias, -1000.0)
    (finding,) = findings("PYR704", watched(training(model)))
    assert "exactly zero in every step, first of 0" in finding.message
    assert "units of relu in 1 are never active" in finding.message


def test_adapters_that_start_at_zero_are_silent(findings, watched, training):
    class Adapter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up, self.base = (
                nn.Linear(8, 2, bias=False),
                nn.Linear(2, 4, bias=False),
                nn.Linear(8, 4),
            )
            nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    assert findings("PYR704", watched(training(Adapter()))) == []


def test_shallow_training_is_silent(findings, watched, training):
    assert findings("PYR704", watched(training(nn.Linear(8, 4)))) == []
