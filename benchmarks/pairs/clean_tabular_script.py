"""Trains a regression of house prices on a table that is prepared once."""

import time
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    rows: int = 30_000
    numbers: int = 12
    towns: int = 200
    batch: int = 512
    epochs: int = 3
    lr: float = 0.02


class PriceModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.town = nn.Embedding(config.towns, 16)
        self.layers = nn.Sequential(
            nn.Linear(config.numbers + 16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, numbers, town):
        return self.layers(torch.cat([numbers, self.town(town)], dim=1)).squeeze(1)


def table(config):
    numbers = torch.randn(config.rows, config.numbers)
    town = torch.randint(config.towns, (config.rows,))
    price = numbers @ torch.randn(config.numbers) + torch.randn(config.towns)[town]
    return (numbers - numbers.mean(0)) / numbers.std(0), town, price


def shuffled_batches(columns, size):
    order = torch.randperm(len(columns[0]))
    columns = [column[order] for column in columns]
    return zip(*(column.split(size) for column in columns), strict=True)


def train_epoch(model, optimizer, columns, config):
    losses = []
    for numbers, town, price in shuffled_batches(columns, config.batch):
        loss = nn.functional.mse_loss(model(numbers, town), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = Config()
    columns = table(config)
    model = PriceModel(config)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9, fused=True)
    started = time.perf_counter()
    for epoch in range(config.epochs):
        print(f"epoch {epoch}: {train_epoch(model, optimizer, columns, config):.4f}")
    print(f"trained in {time.perf_counter() - started:.2f} s")
