"""Rules of thumb beside the program's own figures."""

from __future__ import annotations

import torch

from pyrometer.memory.prediction.formulas import formulas


def test_a_language_model_meets_the_rules_that_apply(tokens):
    found = formulas(tokens())
    assert found["weights"].startswith("4 bytes per parameter in float32")
    assert "as the rule says" in found["weights"]
    assert found["training"].startswith("16 bytes per parameter with AdamW (4 + 4 + 8")
    assert "as the rule says" in found["training"]
    assert found["mixed precision"].startswith("16 bytes per parameter")
    assert "neither gradients nor optimizer state" in found["inference"]
    assert "× 32 × 2 layers" in found["activations"]
    assert "the rule is" in found["activations"]


def test_each_optimizer_has_its_own_rule(mlp):
    for make, text in (
        (lambda p: torch.optim.SGD(p, lr=0.1), "8 bytes per parameter with SGD (4 + 4: weights, gradients)"),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "12 bytes per parameter with SGD with momentum"),
        (lambda p: torch.optim.AdamW(p, amsgrad=True), "20 bytes per parameter with AdamW"),
    ):
        told = formulas(mlp(optimizer=make, width=256))["training"]
        assert told.startswith(text)
        assert "as the rule says" in told


def test_a_rule_about_another_optimizer_is_not_held_against_the_program(mlp):
    told = formulas(mlp(optimizer=lambda p: torch.optim.SGD(p, lr=0.1), width=256))["mixed precision"]
    assert "bytes per parameter with AdamW" in told
    assert "too high" not in told
    assert told.endswith("this program, with SGD: 8.00 bytes")


def test_low_precision_weights_halve_the_rule(mlp):
    told = formulas(mlp(dtype=torch.bfloat16, width=256))
    assert told["training"].startswith("8 bytes per parameter with AdamW (2 + 2 + 4")
    assert "100 % too high" in told["mixed precision"]


def test_what_has_no_rule_is_left_out(mlp):
    told = formulas(mlp(optimizer=lambda p: torch.optim.Adafactor(p, lr=0.1)))
    assert "training" not in told
    assert "activations" not in told
