"""What levers change in a step, where this machine can show it: operators, calls, peaks; and what they leave alone."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

import pyrometer as pm
from pyrometer.loading.loader import settings_of
from pyrometer.tuning.checkpointing.verify import measured_peak
from pyrometer.tuning.levers.applying import apply_levers, subject_of
from pyrometer.tuning.levers.batches import Ahead, ahead, are_ahead, loader_of
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.workload.changes.micro_batches import Parts, in_parts
from pyrometer.workload.variant import Variant


class Operators(TorchDispatchMode):
    """Names of the operators that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func.overloadpacket).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


def deep():
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(6)]
    model = nn.Sequential(*layers)
    batches = [(torch.randn(512, 64), torch.randn(512, 64)) for _ in range(2)]
    return pm.Training(
        model, nn.functional.mse_loss, torch.optim.AdamW(model.parameters(), foreach=False), batches
    )


def loaded(**options):
    work = deep()
    work.batches = DataLoader(
        TensorDataset(torch.randn(12, 64), torch.randn(12, 64)),
        batch_size=4,
        shuffle=True,
        generator=torch.Generator().manual_seed(0),
        **options,
    )
    return work


def changed(work, tmp_path, *choices):
    subject = subject_of(work, tmp_path)
    apply_levers(subject, choices)
    return subject.finished()


def choice(lever, **parameters):
    return LeverChoice(lever=lever, parameters=parameters)


def step_operators(work):
    with work.open() as session:
        session.step(session.prepare())
        with Operators() as seen:
            session.step(session.prepare())
    return seen.names


def test_a_foreach_update_takes_fewer_operators(tmp_path):
    before, after = (
        step_operators(deep()),
        step_operators(changed(deep(), tmp_path, choice("foreach_optimizer"))),
    )
    assert len(after) < 0.7 * len(before)
    assert any(name.startswith("_foreach") for name in after)


def test_a_linear_layer_and_its_activation_are_one_operator(tmp_path):
    work = pm.Inference(
        nn.Sequential(nn.Linear(8, 8), nn.GELU("tanh"), nn.Linear(8, 8), nn.ReLU()), torch.randn(4, 8)
    )
    assert step_operators(work).count("gelu") == 1
    after = step_operators(changed(copy.deepcopy(work), tmp_path, choice("linear_activation")))
    assert after == ["mkldnn._linear_pointwise"] * 2


@pytest.mark.parametrize("lever", ["accumulate", "checkpointing"])
def test_the_peak_is_lower(lever, tmp_path):
    parameters = (
        {"num_parts": 4} if lever == "accumulate" else {"modules": {str(k): "full" for k in range(6)}}
    )
    work = changed(deep(), tmp_path, choice(lever, **parameters))
    assert measured_peak(work) < 0.75 * measured_peak(deep())


@pytest.mark.slow
def test_plans_of_checkpointing_save_more_from_one_to_the_next(tmp_path):
    choices = find_lever("checkpointing").choices(subject_of(deep(), tmp_path))
    peaks = [measured_peak(changed(deep(), tmp_path, choice("checkpointing", **each))) for each in choices]
    assert choices
    assert sorted(peaks, reverse=True) == peaks
    assert peaks[-1] < measured_peak(deep())


def test_a_copy_of_the_model_is_checkpointed_as_well(tmp_path):
    work = changed(deep(), tmp_path, choice("checkpointing", modules={"0": "full"}))
    with work.open(), work.open() as second:
        assert type(second.model[0].forward).__name__ == "CheckpointedForward"
    assert "forward" not in vars(work.parts.model[0])


def test_workers_are_those_of_a_copy_and_the_batches_are_the_same(tmp_path):
    work = loaded()
    users, before = work.batches, settings_of(work.batches)
    after = changed(work, tmp_path, choice("num_workers", num=1))
    assert settings_of(users) == before
    assert loader_of(after.batches) is not users
    assert losses(after) == losses(loaded())


def losses(work):
    with work.open() as session:
        return [float(session.step(session.prepare())) for _ in range(4)]


def test_a_loader_in_parts_gets_its_settings_below_them(tmp_path):
    after = changed(loaded(), tmp_path, choice("accumulate", num_parts=2), choice("num_workers", num=1))
    assert isinstance(after.batches, Parts)
    assert loader_of(after.batches).num_workers == 1


def test_numbers_of_workers_leave_out_the_loaders_own(tmp_path):
    counts = [each["num"] for each in find_lever("num_workers").choices(subject_of(loaded(), tmp_path))]
    assert counts
    assert 0 not in counts


def test_whole_batches_are_copied_ahead_in_the_same_order():
    work = in_parts(loaded(), 2)
    batches = ahead(work.batches, torch.device("cpu"), pin=False)
    assert are_ahead(batches)
    assert not are_ahead(work.batches)
    assert isinstance(batches.whole, Ahead)
    work.batches = batches
    assert losses(work) == losses(in_parts(loaded(), 2))


def test_a_compiled_optimizer_survives_a_copy_and_a_scheduler(tmp_path):
    work = deep()
    for group in work.parts.optimizer.param_groups:
        group["lr"] = torch.tensor(1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(work.parts.optimizer, 1)
    work.parts = work.parts._replace(scheduler=scheduler)
    lever = find_lever("compile_optimizer")
    subject = subject_of(work, tmp_path)
    if (reason := lever.refuses(subject)) is not None:
        pytest.skip(reason)
    lever.apply(subject, {})
    optimizer = work.parts.optimizer
    assert isinstance(optimizer, torch.optim.AdamW)
    own = work.parts.copied(Variant()).optimizer
    assert type(own) is type(optimizer)
    assert own.step.__wrapped__ is type(own).step


def test_attention_is_one_operator_and_the_rest_of_the_module_the_same(tmp_path):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.softmax = nn.Linear(16, 48), nn.Softmax(dim=-1)

        def forward(self, x, scale=None):
            q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
            scores = torch.matmul(q, k.mT) / 2.0 if scale is None else q
            return torch.matmul(self.softmax(scores), v)

    work = pm.Inference(nn.Sequential(Attention()), torch.randn(2, 6, 16))
    own = pm.Inference(copy.deepcopy(work.model), work.inputs)
    after = changed(own, tmp_path, choice("sdpa"))
    assert list(after.model.state_dict()) == list(work.model.state_dict())
    operators = step_operators(after)
    assert "_softmax" not in operators
    assert any("scaled_dot_product" in name for name in operators)
