"""Several short epochs over a DataLoader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Epochs:
    def __init__(self, loader):
        self.loader = loader
        self.iterator = iter(loader)
        self.finished = 0

    def next(self):
        try:
            return next(self.iterator)
        except StopIteration:
            self.finished += 1
            self.iterator = iter(self.loader)
            return next(self.iterator)


def make():
    dataset = TensorDataset(torch.randn(70, 20), torch.randint(0, 2, (70,)))
    epochs = Epochs(DataLoader(dataset, batch_size=8, shuffle=True))
    model = nn.Linear(20, 2)
    optimizer = torch.optim.RMSprop(model.parameters())

    def step():
        x, y = epochs.next()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "stable",
    "note": "the last batch of an epoch is smaller, and each epoch draws a permutation",
}
