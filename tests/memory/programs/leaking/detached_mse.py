"""An autoencoder; the losses are detached before they are kept."""

import torch
from torch import nn
from torch.nn import functional


def make():
    autoencoder = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 128))
    optimizer = torch.optim.Adam(autoencoder.parameters())
    signals = torch.randn(64, 128)
    loss_history = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(autoencoder(signals), signals)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.detach())
        return torch.stack(loss_history[-10:]).mean()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("loss_history",),
    "line_contains": ("loss_history.append(loss.detach())", "loss = functional.mse_loss"),
    "graph": False,
    "bytes_per_step": 32768,
    "note": "on CPU the scalar of mse_loss owns the storage of the unreduced loss, 64 x 128 floats; .item() or .clone() frees it",
}
