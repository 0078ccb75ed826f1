"""Trains a deep residual network on tabular sensor data, with gradient clipping."""

import time

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class SensorNet(nn.Module):
    def __init__(self, features=24, width=24, depth=20):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.trunk = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.trunk(self.stem(x))).squeeze(-1)


def clip_gradients(model, limit):
    return nn.utils.clip_grad_norm_(model.parameters(), limit, error_if_nonfinite=True, foreach=True)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = torch.randn(4096, 24)
    target = torch.sin(rows[:, 0] * 2) + rows[:, 1] * rows[:, 2]
    model = SensorNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, fused=True)

    started = time.perf_counter()
    for step in range(150):
        chosen = torch.arange(step * 32, step * 32 + 32) % len(rows)
        loss = nn.functional.mse_loss(model(rows[chosen]), target[chosen])
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model, 0.5)
        optimizer.step()
    print(f"trained in {time.perf_counter() - started:.2f} s, last loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
