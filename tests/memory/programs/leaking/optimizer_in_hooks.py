"""The optimizer runs inside the backward pass; it is rebuilt whenever the learning rate changes."""

import torch
from torch import nn


class FusedTraining:
    restart_every = 5

    def __init__(self):
        self.model = nn.Linear(40, 20)
        self.count = 0
        self.lr = 1e-3

    def attach(self):
        optimizers = {p: torch.optim.Adam([p], lr=self.lr) for p in self.model.parameters()}

        def update(parameter):
            optimizers[parameter].step()
            optimizers[parameter].zero_grad(set_to_none=False)

        for parameter in self.model.parameters():
            parameter.register_post_accumulate_grad_hook(update)

    def train_step(self, x):
        if self.count % self.restart_every == 0:
            self.lr *= 0.9
            self.attach()
        self.count += 1
        loss = self.model(x).square().mean()
        loss.backward()
        return loss.item()


def make():
    training = FusedTraining()
    x = torch.randn(8, 40)

    def step():
        return training.train_step(x)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("hooks", "optimizers", "update"),
    "line_contains": (
        "parameter.register_post_accumulate_grad_hook(update)",
        "optimizers[parameter].step()",
        "loss.backward()",
    ),
    "graph": False,
    "bytes_per_step": 1314,
    "note": "old hooks stay, each with its own optimizer and its state: 2 x 820 floats and two counters in five steps",
}
