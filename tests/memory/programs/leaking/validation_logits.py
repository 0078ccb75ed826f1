"""Every few steps the validation batch goes through the model; logits are kept for the AUC."""

import torch
from torch import nn


class Experiment:
    validate_every = 5

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(40, 80), nn.ReLU(), nn.Dropout(0.1), nn.Linear(80, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.train_batch = torch.randn(32, 40), torch.randint(0, 2, (32,))
        self.val_batch = torch.randn(64, 40), torch.randint(0, 2, (64,))
        self.val_logits = []
        self.iteration = 0

    def train_step(self):
        x, y = self.train_batch
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.iteration += 1
        if self.iteration % self.validate_every == 0:
            self.validate()
        return loss.item()

    def validate(self):
        self.model.eval()
        x, _ = self.val_batch
        logits = self.model(x)
        self.val_logits.append(logits)
        self.model.train()


def make():
    return Experiment().train_step


EXPECTED = {
    "verdict": "leak",
    "holder": ("val_logits",),
    "line_contains": ("self.val_logits.append(logits)", "logits = self.model(x)"),
    "graph": True,
    "bytes_per_step": None,
    "note": "each fifth step keeps the validation graph with its activations",
}
