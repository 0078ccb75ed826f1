"""An autoencoder with momentum; the loss is kept as a number."""

import torch
from torch import nn
from torch.nn import functional


def make():
    autoencoder = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 128))
    optimizer = torch.optim.SGD(autoencoder.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    signals = torch.randn(64, 128)
    loss_history = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(autoencoder(signals), signals)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
        return sum(loss_history[-10:]) / 10

    return step


EXPECTED = {"verdict": "stable", "note": ".item() lets the unreduced loss go"}
