"""A trainer with callbacks; fit() is called once per round of federated learning."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.callbacks = []

    def fit(self, x, reference):
        self.callbacks.append(Proximal(reference))
        self.optimizer.zero_grad()
        loss = self.model(x).abs().mean()
        loss.backward()
        self.callbacks[-1].after_backward(self.model)
        self.optimizer.step()
        return loss.item()


class Proximal:
    def __init__(self, reference):
        self.reference = reference

    def after_backward(self, model):
        for parameter, anchor in zip(model.parameters(), self.reference):
            parameter.grad.add_(parameter.detach() - anchor, alpha=0.01)


def make():
    model = nn.Linear(48, 12)
    trainer = Trainer(model)
    x = torch.randn(8, 48)

    def step():
        reference = [parameter.detach().clone() for parameter in model.parameters()]
        return trainer.fit(x, reference)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("callbacks",),
    "line_contains": (
        "self.callbacks.append(Proximal(reference))",
        "reference = [parameter.detach().clone() for parameter in model.parameters()]",
    ),
    "graph": False,
    "bytes_per_step": 2352,
    "note": "each round adds a callback with a copy of the weights",
}
