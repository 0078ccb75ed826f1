"""A profile is whole: its parts add up, nothing of the user's is changed, and what cannot be told is said."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.profiling import profile_memory, runs_compiled
from pyrometer.record import from_json, to_json
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training


def training() -> Training:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 8))
    data = TensorDataset(torch.randn(64, 32), torch.randn(64, 8))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    return Training(model, nn.functional.mse_loss, torch.optim.Adam(model.parameters()), loader)


@pytest.fixture(scope="module")
def profile() -> MemoryProfile:
    return profile_memory(training(), budgets_bytes=[2**20, 2**22], leak_steps=30)


def test_parts_add_up(profile: MemoryProfile) -> None:
    assert sum(profile.ledger_bytes.values()) == profile.peak_bytes
    assert set(profile.ledger_bytes) == set(CATEGORIES)
    assert sum(profile.by_dtype.values()) == profile.peak_bytes - profile.ledger_bytes["workspace"]
    assert profile.ledger_bytes["unknown"] <= 0.03 * profile.peak_bytes
    assert profile.units_per_step == 16
    assert profile.bytes_per_unit == profile.peak_bytes / 16


def test_the_prediction_agrees(profile: MemoryProfile) -> None:
    assert profile.predicted is not None
    assert profile.predicted.error is not None
    assert abs(profile.predicted.error) < 0.05
    assert [fit.budget_bytes for fit in profile.fits] == [2**20, 2**22]
    assert {law.category for law in profile.scaling} >= {"parameters", "activations"}
    assert profile.leak is not None
    assert profile.leak.verdict in {"stable", "allocator warm-up"}


def test_it_survives_json(profile: MemoryProfile) -> None:
    assert from_json(MemoryProfile, to_json(profile)) == profile


def random_states() -> tuple[Any, ...]:
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]  # noqa: NPY002


def test_nothing_of_the_users_is_changed() -> None:
    work = training()
    before = {name: value.clone() for name, value in work.parts.model.state_dict().items()}
    states = random_states()
    profile_memory(work, scaling=False, leak_steps=24, weigh_s=3.0)
    assert random_states() == states
    assert not work.parts.optimizer.state
    assert all(parameter.grad is None for parameter in work.parts.model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in work.parts.model.state_dict().items())


def test_without_prediction_nothing_is_rehearsed() -> None:
    memory_profile = profile_memory(training(), predict=False)
    assert (memory_profile.predicted, memory_profile.scaling, memory_profile.fits, memory_profile.advice) == (
        None,
        [],
        [],
        [],
    )


def test_what_cannot_be_predicted_is_told() -> None:
    class Selecting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[x > 0]

    memory_profile = profile_memory(Inference(Selecting(), torch.randn(64)), weigh_s=1.0)
    assert memory_profile.predicted is None
    assert memory_profile.peak_bytes > 0
    assert any("nonzero" in note and "test_profiling.py" in note for note in memory_profile.notes)


def test_a_profiler_of_the_users_is_left_alone() -> None:
    with torch.profiler.profile() as profiler:
        memory_profile = profile_memory(Inference(nn.Linear(8, 8), torch.randn(4, 8)), predict=False)
    assert any("a profiler is at work already" in note for note in memory_profile.notes)
    assert profiler.events()


def test_what_is_compiled_is_recognised() -> None:
    model = nn.Linear(8, 8)
    x = torch.randn(4, 8)
    assert not runs_compiled(Inference(model, x))
    assert runs_compiled(Inference(model, x).compiled())
    inside = nn.Sequential()
    inside.add_module("layer", torch.compile(model, backend="eager"))  # type: ignore[arg-type]
    assert runs_compiled(Inference(inside, x))
    assert runs_compiled(Call(torch.compile(model.forward, backend="eager"), x))


@pytest.mark.slow
def test_a_compiled_program_has_a_ledger_from_the_allocator() -> None:
    memory_profile = profile_memory(training().compiled(), predict=False)
    assert "compiled" in memory_profile.source
    assert memory_profile.ledger_bytes["parameters"] == sum(
        p.nbytes for p in training().parts.model.parameters()
    )
    assert sum(memory_profile.ledger_bytes.values()) == memory_profile.peak_bytes


def test_a_prediction_that_takes_too_long_is_given_up_and_leaves_the_rest() -> None:
    whole = profile_memory(training(), predict_s=0.0, scaling=False)
    assert whole.predicted is None
    assert whole.formulas == {}
    assert [note for note in whole.notes if "without data takes longer than the 0 s" in note]
    assert sum(whole.ledger_bytes.values()) == whole.peak_bytes
