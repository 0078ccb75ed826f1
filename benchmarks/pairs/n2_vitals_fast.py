"""Early-warning scores from vital signs at the bedside: a gated network over windows of measurements."""

import time

import torch
from torch import nn


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + torch.sigmoid(self.gate(x)) * torch.tanh(self.value(x)))


class WarningScore(nn.Module):
    def __init__(self, signals=8, width=64, depth=6):
        super().__init__()
        self.read = nn.Linear(signals, width)
        self.blocks = nn.ModuleList(GatedBlock(width) for _ in range(depth))
        self.score = nn.Linear(width, 1)

    def forward(self, window):
        x = self.read(window)
        for block in self.blocks:
            x = block(x)
        return self.score(x.mean(1)).squeeze(1)


def ward(patients=640, minutes=12, signals=8):
    vitals = torch.randn(patients, minutes, signals).cumsum(1) * 0.3
    worsened = (vitals[:, -1, 0] - vitals[:, 0, 0] > 0.5).float()
    return vitals, worsened


def train(model, vitals, worsened, steps=70, batch=16):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.BCEWithLogitsLoss()
    for step in range(steps):
        rows = slice(step * batch % len(vitals), step * batch % len(vitals) + batch)
        loss = criterion(model(vitals[rows]), worsened[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vitals, worsened = ward()
    model = WarningScore()
    started = time.perf_counter()
    last = train(model, vitals, worsened)
    print(f"trained in {time.perf_counter() - started:.2f} s, loss {last:.5f}")
