"""What is not finite is followed back to the line where it arose."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError, UserProgramError
from pyrometer.numerics.watch import NESTED, watch_numerics


class OwnSoftmax(nn.Module):
    """Overflows where the largest score is not taken off first."""

    def forward(self, x):
        e = torch.exp(x * 1e4)
        return e / e.sum(-1, keepdim=True)


class Attention(nn.Module):
    """Masked scores hold minus infinity, as they should."""

    def __init__(self, *, whole_row: bool) -> None:
        super().__init__()
        mask = torch.ones(4, 4, dtype=torch.bool).triu(0 if whole_row else 1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        scores = (x @ x.mT).masked_fill(self.mask, -math.inf)
        return torch.softmax(scores, -1) @ x


class AddedMask(nn.Module):
    """A mask that is a constant with minus infinity in it."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.full((4, 4), -math.inf).triu(1)

    def forward(self, x):
        return x @ x.mT + self.mask


class InPlace(nn.Module):
    """Writes a bad value into a part of a good buffer."""

    def forward(self, x):
        out = torch.empty_like(x)
        out[:] = x
        out[:, 0] = torch.log(-x[:, 0].abs())
        return out + 1


def watched(model: nn.Module, x: torch.Tensor, steps: int = 2) -> Any:
    return watch_numerics(pm.Inference(model, x), steps=steps)


def test_a_nan_is_followed_to_the_infinity_that_it_was_made_of(line_of):
    model = nn.Sequential(nn.Linear(8, 8), OwnSoftmax(), nn.Linear(8, 2))
    found = watched(model, torch.randn(4, 8))
    first = found.non_finite
    assert (first.kind, first.step, first.seen_in, first.in_result) == ("nan", 0, "1", True)
    assert first.source == "operator"
    assert (first.origin.op, first.origin.line) == ("aten::div", line_of(OwnSoftmax.forward, "return"))
    assert (first.overflow.op, first.overflow.line) == ("aten::exp", line_of(OwnSoftmax.forward, "exp"))
    assert first.origin.module == "1"
    assert first.origin.file == __file__
    assert found.num_non_finite_steps == 2


def test_minus_infinity_of_a_mask_is_no_fault():
    x = torch.randn(2, 4, 8)
    assert watched(Attention(whole_row=False), x).non_finite is None
    assert watched(AddedMask(), x).non_finite is None
    assert watched(AddedMask(), x).num_non_finite_steps == 0


def test_a_row_that_is_masked_as_a_whole_names_the_softmax_and_the_mask(line_of):
    first = watched(Attention(whole_row=True), torch.randn(2, 4, 8)).non_finite
    assert first.origin.op == "aten::softmax"
    assert first.origin.line == line_of(Attention.forward, "softmax")
    assert first.overflow.op == "aten::masked_fill"


def test_inputs_that_are_not_finite_are_named():
    x = torch.randn(4, 8)
    x[1, 2] = math.nan
    first = watched(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), x).non_finite
    assert (first.source, first.source_name, first.seen_in) == ("input", "0", "0")


def test_parameters_that_are_not_finite_are_named():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
    with torch.no_grad():
        model[1].weight[0, 0] = math.inf
    first = watched(model, torch.randn(4, 8)).non_finite
    assert (first.source, first.source_name, first.seen_in) == ("parameter", "1.weight", "1")


def test_a_value_written_into_a_part_of_a_buffer_is_found(line_of):
    first = watched(InPlace(), torch.randn(4, 8)).non_finite
    assert first.origin.op == "aten::log"
    assert first.origin.line == line_of(InPlace.forward, "log")


def test_uninitialised_memory_is_not_looked_at():
    class Scratch(nn.Module):
        def forward(self, x):
            held = torch.empty(4, 8)
            held.view(torch.int32).fill_(0x7FC00000)  # NaN, as memory may hold
            torch.add(x, 1, out=held)
            return held

    assert watched(Scratch(), torch.randn(4, 8)).non_finite is None


def test_infinity_within_that_ends_finite_is_no_fault():
    class Gate(nn.Module):
        def forward(self, x):
            return 1 / (1 + torch.exp(x * 1e4))

    assert watched(Gate(), torch.randn(4, 8)).non_finite is None


def test_a_loss_of_minus_infinity_is_a_fault(training):
    def log_of_zero(output, _target):
        return torch.log(output.sum() * 0)

    numerics = watch_numerics(training(nn.Linear(8, 4), loss=log_of_zero), steps=1)
    assert numerics.non_finite.origin.op == "aten::log"
    assert numerics.non_finite.seen_in is None
    assert numerics.num_non_finite_steps == 1


def test_sound_programs_have_nothing_to_report(training):
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    numerics = watch_numerics(training(model))
    assert numerics.non_finite is None
    assert numerics.gradients.non_finite == []
    assert (numerics.kind, numerics.device, numerics.num_steps, numerics.notes) == ("training", "cpu", 5, [])
    assert [output.values.num_values for output in numerics.outputs] == [1] * 5
    assert [module.module for module in numerics.modules] == ["0", "1", "2", "3", "loss"]


def test_compiled_code_is_watched_as_eager_code():
    model = torch.compile(nn.Sequential(nn.Linear(8, 8), OwnSoftmax()))
    found = watched(model, torch.randn(4, 8))
    assert found.non_finite.overflow.op == "aten::exp"
    assert found.non_finite.seen_in == "1"
    assert any("compiled" in note for note in found.notes)


def test_a_call_that_trains_by_itself_is_watched():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train():
        loss = torch.sqrt((model(torch.ones(2, 4)) * 0).sum())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    before = {name: value.clone() for name, value in model.state_dict().items()}
    numerics = watch_numerics(pm.Call(train), steps=2)
    assert numerics.kind == "call"
    assert numerics.gradients.non_finite[0].parameter in before


def test_code_that_raises_is_the_users():
    class Fails(nn.Module):
        def forward(self, _x):
            raise ValueError("no such class")

    with pytest.raises(UserProgramError, match="no such class"):
        watched(Fails(), torch.randn(1, 8))
    assert not torch.nn.modules.module._global_forward_hooks


def test_steps_below_one_are_refused():
    with pytest.raises(InputError, match="steps: got 0"):
        watched(nn.Linear(8, 8), torch.randn(1, 8), steps=0)


def test_time_that_is_up_ends_the_watch():
    ticks = iter(range(0, 1000, 20))
    numerics = watch_numerics(
        pm.Inference(nn.Linear(8, 8), torch.randn(1, 8)), steps=10, budget_s=30, clock=lambda: next(ticks)
    )
    assert 1 <= numerics.num_steps < 10
    assert "the time was up" in numerics.notes[0]


def test_the_users_objects_are_as_before(training):
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).eval()
    work = training(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state, random_state = dict(work.parts.optimizer.state), torch.get_rng_state()
    watch_numerics(work)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert dict(work.parts.optimizer.state) == state
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_watching_changes_no_result():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 4)).train()

    def run():
        torch.manual_seed(3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return pm.Training(
            model, nn.CrossEntropyLoss(), optimizer, [(torch.ones(4, 8), torch.tensor([0, 1, 2, 3]))]
        )

    numerics = watch_numerics(run(), steps=1)
    with run().open() as session:
        plain = float(session.step())
    assert numerics.outputs[0].values.mean == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_are_passed_over_with_a_note(layout):
    class Ragged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x):
            rows = torch.nested.as_nested_tensor([x[:2], x[2:5]], layout=layout)
            return self.layer(rows)

    numerics = watch_numerics(pm.Inference(Ragged(), torch.randn(5, 8)), steps=2)
    assert numerics.notes == [NESTED]
    assert numerics.non_finite is None
