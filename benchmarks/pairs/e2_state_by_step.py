"""Load forecasting: a recurrent encoder over two weeks of hourly readings and a linear head for the next day."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import pyrometer as pm


@dataclass
class Setup:
    series: int = 32
    hours: int = 168
    horizon: int = 24
    hidden: int = 48


class StepwiseEncoder(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs, hidden)

    def forward(self, readings: Tensor) -> Tensor:
        h = c = readings.new_zeros(readings.shape[0], self.cell.hidden_size)
        for t in range(readings.shape[1]):
            gates = self.cell.weight_ih @ readings[:, t].T + (self.cell.weight_hh @ h.T)
            gates = gates.T + self.cell.bias_ih + self.cell.bias_hh
            i, f, g, o = gates.chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class SequenceEncoder(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)

    def forward(self, readings: Tensor) -> Tensor:
        return self.lstm(readings)[1][0][0]


class Forecaster(nn.Module):
    def __init__(self, setup: Setup, encoder: type[nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder(6, setup.hidden)
        self.head = nn.Linear(setup.hidden, setup.horizon)

    def forward(self, readings: Tensor) -> Tensor:
        level = readings[..., 0].mean(1, keepdim=True)
        return level + self.head(self.encoder(readings))


def training(encoder: type[nn.Module]) -> pm.Training:
    setup = Setup()
    torch.manual_seed(0)
    model = Forecaster(setup, encoder)
    generator = torch.Generator().manual_seed(9)
    days = [
        (
            torch.randn(setup.series, setup.hours, 6, generator=generator),
            torch.randn(setup.series, setup.horizon, generator=generator),
        )
        for _ in range(6)
    ]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    return pm.Training(model, nn.SmoothL1Loss(), optimizer, days, unit="series")


def slow() -> pm.Training:
    return training(StepwiseEncoder)


def fast() -> pm.Training:
    return training(SequenceEncoder)
