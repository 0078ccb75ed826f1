"""Validate after every training step; the mean loss decides when to stop."""

import torch
from torch import nn


class Validator:
    def __init__(self, model, criterion):
        self.model = model
        self.criterion = criterion
        self.total_loss = torch.zeros(())
        self.seen = 0

    def update(self, images, labels):
        self.model.eval()
        output = self.model(images)
        loss = self.criterion(output, labels)
        self.total_loss = self.total_loss + loss * len(images)
        self.seen += len(images)
        self.model.train()

    def mean(self):
        return self.total_loss.item() / self.seen


def make():
    model = nn.Sequential(nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    validator = Validator(model, nn.CrossEntropyLoss())
    images = torch.randn(24, 1, 16, 16)
    labels = torch.randint(0, 10, (24,))

    def step():
        validator.update(images, labels)
        return validator.mean()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("total_loss",),
    "line_contains": (
        "self.total_loss = self.total_loss + loss * len(images)",
        "output = self.model(images)",
        "loss = self.criterion(output, labels)",
    ),
    "graph": True,
    "bytes_per_step": None,
    "note": "without no_grad and without backward the sum holds every activation",
}
