"""Training for int8 and for a teacher: it brings what it is for, and leaves the user's objects as they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.tuning.distilling import distil
from pyrometer.tuning.levers.families.quantisation.linears import int8_layers
from pyrometer.tuning.quantising import train_quantised


def student(width=64, batches=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 64))
    data = [(torch.randn(32, 64), torch.randint(0, 64, (32,))) for _ in range(4)]
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return pm.Training(model, nn.functional.cross_entropy, optimizer, batches or data)


def state_of(work):
    model, optimizer = work.parts.model, work.parts.optimizer
    return (
        [parameter.clone() for parameter in model.parameters()],
        [module.training for module in model.modules()],
        [parameter.grad for parameter in model.parameters()],
        len(optimizer.state),
        torch.get_rng_state(),
    )


def assert_same(before, after):
    torch.testing.assert_close(after[0], before[0], rtol=0, atol=0)
    assert after[1:4] == before[1:4]
    assert torch.equal(after[4], before[4])


def test_training_for_int8_ends_in_int8_with_a_lower_loss_and_touches_nothing():
    work = student()
    before = state_of(work)
    trained = train_quantised(work, steps=30)
    assert_same(before, state_of(work))
    assert len(int8_layers(trained.model)) == 2
    assert trained.loss_after < 0.8 * trained.loss_before
    assert trained.float_loss == pytest.approx(trained.loss_before, rel=0.05)
    assert trained.steps == 30
    with torch.inference_mode():
        assert trained.model(torch.randn(2, 64)).shape == (2, 64)


def test_a_student_comes_closer_to_its_teacher_and_nothing_is_touched():
    work = student()
    teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).train()
    nn.init.normal_(teacher[2].weight, std=0.3)
    before = (state_of(work), [parameter.clone() for parameter in teacher.parameters()])
    learned = distil(work, teacher, steps=60, temperature=2.0, alpha=1.0)
    assert_same(before[0], state_of(work))
    assert all(torch.equal(a, b) for a, b in zip(before[1], teacher.parameters(), strict=True))
    assert teacher.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in teacher.parameters())
    assert learned.loss_after < 0.7 * learned.loss_before
    assert not learned.model.training
    assert not learned.model._forward_hooks


def test_without_weight_of_the_teacher_it_is_the_workloads_own_training():
    work = student()
    teacher = nn.Linear(64, 64)
    learned = distil(work, teacher, steps=5, alpha=0.0)
    torch.manual_seed(3)
    other = distil(work, nn.Linear(64, 64), steps=5, alpha=0.0)
    assert learned.model.state_dict().keys() == other.model.state_dict().keys()


def test_logits_may_be_an_attribute_and_a_loss_may_take_the_model():
    class Output:
        def __init__(self, logits):
            self.logits = logits

    class Model(nn.Linear):
        def forward(self, x):
            return Output(super().forward(x))

    def loss(model, batch):
        return nn.functional.cross_entropy(model(batch[0]).logits, batch[1])

    torch.manual_seed(0)
    model = Model(64, 64)
    work = student()
    wrapped = pm.Training(model, loss, torch.optim.Adam(model.parameters(), 1e-2), work.batches)
    learned = distil(wrapped, nn.Linear(64, 64), steps=20, alpha=0.9)
    assert learned.loss_after < learned.loss_before


REFUSED = [
    (lambda: distil(student(), nn.Linear(64, 8), 1), "both must have one shape"),
    (lambda: distil(student(), nn.Linear(64, 64), 0), "steps: got 0"),
    (lambda: distil(student(), nn.Linear(64, 64), 1, temperature=0), "temperature: got 0"),
    (lambda: distil(student(), nn.Linear(64, 64), 1, alpha=2), "alpha: got 2"),
    (lambda: distil(student(batches=iter([])), nn.Linear(64, 64), 1), "got an iterator"),
    (lambda: train_quantised(student(width=8), 1), "no linear layer is large enough"),
    (lambda: train_quantised(student(), True), "steps: got True"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_bad_input_is_told(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_a_loss_that_uses_the_users_model_is_refused_and_leaves_no_gradient():
    work = student()
    model = work.parts.model
    around = pm.Training(
        model, lambda output, target: model(output).sum(), work.parts.optimizer, work.batches
    )
    before = state_of(work)
    with pytest.raises(InputError, match="from outside its arguments"):
        train_quantised(around, 1)
    assert_same(before, state_of(work))
