"""Trains a transformer that fills gaps in long sequences of weather-station readings."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm

STATIONS, STEPS, WIDTH, HEADS = 12, 512, 64, 8


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        weights = torch.softmax(weights, dim=-1)
        return torch.einsum("bhqk,bhkd->bhqd", weights, v)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.mix(self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)))
        return self.output(mixed.transpose(1, 2).flatten(2))


class BlockwiseMixer(Mixer):
    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class GapFiller(nn.Module):
    def __init__(self, mixer: type[Mixer], depth: int = 2) -> None:
        super().__init__()
        self.read = nn.Linear(STATIONS + 1, WIDTH)
        self.mixers = nn.ModuleList(mixer() for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(depth))
        self.write = nn.Linear(WIDTH, STATIONS)

    def forward(self, readings: Tensor) -> Tensor:
        clock = torch.linspace(0, 1, STEPS).expand(len(readings), STEPS).unsqueeze(-1)
        x = self.read(torch.cat([readings, clock], dim=-1))
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            x = x + mixer(norm(x))
        return self.write(x)


def windows(count: int = 6, batch: int = 2) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(4)
    complete = torch.randn(count, batch, STEPS, STATIONS, generator=generator).cumsum(2) / 10
    gaps = torch.rand(complete.shape, generator=generator) < 0.15
    return list(zip(complete.masked_fill(gaps, 0), complete, strict=True))


def training(mixer: type[Mixer]) -> pm.Training:
    torch.manual_seed(0)
    model = GapFiller(mixer)
    return pm.Training(
        model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.01), windows(), unit="windows"
    )


def slow() -> pm.Training:
    return training(Mixer)


def fast() -> pm.Training:
    return training(BlockwiseMixer)
