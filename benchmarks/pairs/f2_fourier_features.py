"""A coordinate network fits a height field: random Fourier features, then a deep multilayer perceptron."""

import numpy as np
import torch
from torch import Tensor, nn

import pyrometer as pm

FREQUENCIES = 64
POINTS = 2048


class FourierFeatures(nn.Module):
    def __init__(self, directions: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("directions", torch.from_numpy(directions))

    def forward(self, xy: Tensor) -> Tensor:
        phase = 2 * torch.pi * xy.to(self.directions.dtype) @ self.directions
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class HeightField(nn.Module):
    def __init__(self, features: FourierFeatures, width: int = 192) -> None:
        super().__init__()
        self.features = features
        layers: list[nn.Module] = []
        for inputs in (2 * FREQUENCIES, width, width):
            layers += [nn.Linear(inputs, width), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(width, 1)).to(features.directions.dtype)

    def forward(self, xy: Tensor) -> Tensor:
        return self.network(self.features(xy)).squeeze(-1)


class Terrain:
    """Endless batches of surveyed points."""

    def __iter__(self):
        random = np.random.default_rng(0)
        while True:
            xy = random.random((POINTS, 2))
            height = np.sin(7 * xy[:, 0]) * np.cos(5 * xy[:, 1])
            yield torch.from_numpy(xy.astype(np.float32)), torch.from_numpy(height.astype(np.float32))


def squared_error(prediction: Tensor, height: Tensor) -> Tensor:
    return (prediction - height).square().mean()


def fit(directions: np.ndarray) -> pm.Training:
    torch.manual_seed(0)
    model = HeightField(FourierFeatures(directions))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    return pm.Training(model, squared_error, optimizer, Terrain(), unit="points", per_step=POINTS)


def slow() -> pm.Training:
    return fit(np.random.default_rng(3).normal(size=(2, FREQUENCIES)))


def fast() -> pm.Training:
    return fit(np.random.default_rng(3).normal(size=(2, FREQUENCIES)).astype(np.float32))
