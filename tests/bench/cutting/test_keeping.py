"""The state of what a function trains survives steps that are not its own."""

from __future__ import annotations

import torch
from torch import nn

from pyrometer.bench.cutting.keeping import UsedState


class Loop:
    """A program that holds its model where nobody asks for it."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.randn(4, 3)).sum().backward()
        self.optimizer.step()

    def state(self) -> list[torch.Tensor]:
        momenta = [
            self.optimizer.state[parameter]["momentum_buffer"] for parameter in self.model.parameters()
        ]
        return [
            tensor.detach().clone() for tensor in (*self.model.parameters(), *self.model.buffers(), *momenta)
        ]


def test_modules_and_optimizers_that_a_step_used_are_as_before() -> None:
    loop, used = Loop(), UsedState()
    with used.noting():
        loop.step()
    before = loop.state()
    with used.preserved():
        loop.step()
        assert not all(map(torch.equal, before, loop.state()))
        for parameter in loop.model.parameters():
            parameter.data.fill_(torch.nan)
    assert all(map(torch.equal, before, loop.state()))


def test_gradients_that_are_collected_over_steps_are_as_before() -> None:
    loop, used = Loop(), UsedState()
    with used.noting():
        loop.step()
    kept = [(each.grad, each.grad.clone()) for each in loop.model.parameters() if each.grad is not None]
    with used.preserved():
        loop.model(torch.randn(4, 3)).pow(2).sum().backward()
        loop.optimizer.zero_grad()
    assert all(each.grad is grad for each, (grad, _) in zip(loop.model.parameters(), kept, strict=True))
    assert all(torch.equal(grad, value) for grad, value in kept)


def test_what_was_not_used_is_left_alone() -> None:
    loop, other, used = Loop(), Loop(), UsedState()
    with used.noting():
        loop.step()
    other.step()
    before = other.state()
    with used.preserved():
        other.step()
    assert not all(map(torch.equal, before, other.state()))
