"""The same optimizer step from smaller batches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.memory.prediction.fits import largest_batch_that_fits
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.recording.steps import record_steps
from pyrometer.tuning.batching.micro import micro_batched
from pyrometer.workload.changes.micro_batches import micro_batches, part_sizes


def net(*last):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4), *last)


def training(model, loss, batches=None, **settings):
    torch.manual_seed(1)
    batches = batches or [(torch.randn(10, 8), torch.randn(10, 4))]
    return pm.Training(model, loss, torch.optim.SGD(model.parameters(), 0.1), batches, **settings)


@given(st.integers(1, 200), st.integers(1, 50))
def test_parts_differ_by_one_at_most_and_hold_every_sample_once(total, num_parts):
    sizes = part_sizes(total, num_parts)
    assert sum(sizes) == total
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == min(total, num_parts)


def test_batches_are_split_in_all_their_parts_and_other_values_stay():
    batch = {"x": torch.arange(10).view(5, 2), "y": [torch.arange(5)], "scale": torch.ones(3), "name": "a"}
    first, second = micro_batches(batch, 2)
    assert first["x"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert second["y"][0].tolist() == [3, 4]
    assert len(first["scale"]) == 3
    assert second["name"] == "a"
    assert first["x"].untyped_storage().data_ptr() == batch["x"].untyped_storage().data_ptr()


@pytest.mark.parametrize("num_parts", [3, 16])
@pytest.mark.parametrize("loss", [nn.MSELoss(), functional.mse_loss])
def test_gradients_of_a_mean_are_equal_with_parts_of_any_size(num_parts, loss):
    micro_batched(training(net(), loss), num_parts)


def test_losses_of_model_and_batch_and_of_the_output_work_too():
    micro_batched(training(net(), lambda model, batch: functional.mse_loss(model(batch[0]), batch[1])), 3)

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x, target):
            return {"loss": functional.l1_loss(self.net(x), target)}

    batch = {"x": torch.randn(10, 8), "target": torch.randn(10, 4)}
    micro_batched(training(Own(), None, [batch]), 4)


@pytest.mark.exhaustive
def test_the_peak_falls_where_activations_make_it():
    model = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(32, 32), nn.Tanh())])
    x = torch.randn(2048, 32)
    work = training(model, nn.L1Loss(), [(x, x)])
    assert record_steps(micro_batched(work, 8)).peak_bytes < 0.5 * record_steps(work).peak_bytes


def test_accumulation_multiplies_and_the_units_of_a_step_stay():
    work = training(net(), nn.MSELoss(), accumulate=2, per_step=10)
    split = micro_batched(work, 5)
    assert split.accumulate == 10
    for each in (work, split):
        with each.open() as session:
            session.step(session.prepare())
            assert session.units_per_step == 20


def test_loaders_with_a_small_last_batch_are_split():
    data = TensorDataset(torch.randn(9, 8), torch.randn(9, 4))
    work = training(net(), nn.MSELoss(), DataLoader(data, batch_size=4))  # the last batch has one sample
    split = micro_batched(work, 2)
    parameters = []
    for each in (work, split):
        with each.open() as session:
            for _ in range(4):
                session.step(session.prepare())
            parameters.append([p.detach().clone() for p in session.model.parameters()])
    for whole, parts in zip(*parameters, strict=True):
        torch.testing.assert_close(parts, whole)


def test_two_sessions_at_once_do_not_mix_their_parts():
    work = training(net(), nn.MSELoss())
    split = micro_batched(work, 3)
    results = []
    with split.open() as one, split.open() as other:
        for session in (one, other):
            session.step(session.prepare())
        results = [[p.detach().clone() for p in s.model.parameters()] for s in (one, other)]
    with work.open() as session:
        session.step(session.prepare())
        for index, parameter in enumerate(session.model.parameters()):
            torch.testing.assert_close(results[0][index], parameter.detach())
            torch.testing.assert_close(results[1][index], parameter.detach())


def test_a_loss_with_parameters_is_trained_and_restored():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, output, target):
            return functional.mse_loss(output * self.scale, target)

    model, loss = net(), Scaled()
    optimizer = torch.optim.SGD([*model.parameters(), *loss.parameters()], 0.1)
    work = pm.Training(model, loss, optimizer, [(torch.randn(10, 8), torch.randn(10, 4))])
    micro_batched(work, 3)
    assert loss.scale.item() == 2.0


@pytest.mark.parametrize(
    ("model", "loss", "why"),
    [
        (net(nn.BatchNorm1d(4)), nn.MSELoss(), "BatchNorm1d normalises over the batch"),
        (net(), nn.MSELoss(reduction="sum"), "give reduction='sum'"),
        (
            net(),
            lambda output, target: (output - target)[target > 0].square().mean(),
            "the loss is no mean over samples",
        ),
    ],
)
def test_what_cannot_be_equal_is_said_with_the_figure_and_the_reason(model, loss, why):
    with pytest.raises(InputError, match=f"gradients differ by .*{why}"):
        micro_batched(training(model, loss), 3)


def test_a_sum_is_equal_when_it_is_named_as_one():
    work = training(net(), nn.MSELoss(reduction="sum"))
    split = micro_batched(work, 3, reduction="sum")
    trained = []
    for each in (work, split):
        with each.open() as session:
            session.step(session.prepare())
            trained.append([p.detach().clone() for p in session.model.parameters()])
    for whole, parts in zip(*trained, strict=True):
        torch.testing.assert_close(parts, whole)


@pytest.mark.parametrize("num_parts", [0, -1, True, 1.5])
def test_illegal_numbers_of_parts_are_refused(num_parts):
    work = training(net(), nn.MSELoss())
    with pytest.raises(InputError, match="whole number of at least 1"):
        micro_batched(work, num_parts)
    with pytest.raises(InputError, match="whole number of at least 1"):
        micro_batches(torch.zeros(4), num_parts)


def test_what_cannot_be_split_is_refused():
    with pytest.raises(InputError, match="no tensor with a leading dimension"):
        micro_batches({"scale": torch.tensor(1.0)}, 2)
    with pytest.raises(InputError, match="micro-batches are for training"):
        micro_batched(pm.Inference(net(), torch.zeros(1, 8)), 2)
    with pytest.raises(InputError, match="legal are mean, sum"):
        micro_batched(training(net(), nn.MSELoss()), 2, reduction="max")


def test_other_gradients_are_refused_with_the_figure_and_what_to_do():
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 20.0, 1.0]))
    work = training(net(), loss, [(torch.randn(12, 8), torch.arange(12) % 4)])
    with pytest.raises(InputError, match=r"differ by .* % .*class weights.*reduction='sum'"):
        micro_batched(work, 4)
    assert micro_batched(work, 4, check=False).accumulate == 4
    dropping = training(net(nn.Dropout(0.5)), loss, [(torch.randn(12, 8), torch.arange(12) % 4)])
    with pytest.raises(InputError, match="class weights"):
        micro_batched(dropping, 4)
    micro_batched(training(net(nn.Dropout(0.5)), nn.MSELoss()), 4)


def test_time_first_inputs_are_cut_where_they_say_the_samples_are():
    class TimeFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(8, 3)

        def forward(self, x):
            return self.layer(x)[0]

    work = training(TimeFirst(), nn.MSELoss(), [(torch.randn(12, 4, 8), torch.randn(12, 4, 3))])
    with pytest.raises(InputError, match="time is cut; give batch_dim=1"):
        micro_batched(work, 2)
    assert micro_batched(work, 2, batch_dim=1).accumulate == 2


def test_masks_over_positions_are_not_cut_where_there_are_as_many_samples():
    batch = {
        "x": torch.randn(6, 6, 8),
        "mask": torch.ones(6, 6).triu(1).bool(),
        "y": torch.arange(36).view(6, 6),
    }
    first, _ = micro_batches(batch, 2)
    assert [list(first[name].shape) for name in batch] == [[3, 6, 8], [6, 6], [3, 6]]
    assert [list(part[1].shape) for part in micro_batches((torch.randn(6, 8), torch.randn(6, 6)), 2)] == [
        [3, 6]
    ] * 2


@pytest.mark.slow
def test_predictions_speak_of_the_whole_batch_that_is_split():
    def work(samples):
        return training(net(), nn.L1Loss(), [(torch.randn(samples, 8), torch.randn(samples, 4))])

    split = micro_batched(work(64), 4)
    measured = record_steps(micro_batched(work(128), 4, check=False)).peak_bytes
    assert predict_memory(split, batch=128).peak_bytes == measured
    [whole], [parts] = (largest_batch_that_fits(one, [2**20]) for one in (work(64), split))
    assert parts.verified
    assert parts.max_batch > 1.5 * whole.max_batch
