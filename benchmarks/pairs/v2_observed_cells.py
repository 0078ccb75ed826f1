"""Trains an autoencoder on gene expression, where most cells of the table were never measured."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

import pyrometer as pm

GENES, SAMPLES = 2000, 128


class ExpressionNet(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(GENES, width), nn.Tanh())
        self.decode = nn.Linear(width, GENES)

    def forward(self, expression: Tensor) -> Tensor:
        return self.decode(self.encode(expression))


class HuberOnSelected:
    """The mean error of the measured cells."""

    def __call__(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        expression, measured = batch
        restored = model(expression * measured)
        picked, truth = restored[measured], expression[measured]
        error = picked - truth
        small = error.abs() < 1.0
        quadratic = 0.5 * error[small].square()
        linear = error[~small].abs() - 0.5
        return (quadratic.sum() + linear.sum()) / measured.sum()


class HuberEverywhere(HuberOnSelected):
    def __call__(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        expression, measured = batch
        error = nn.functional.huber_loss(model(expression * measured), expression, reduction="none")
        return torch.where(measured, error, 0.0).sum() / measured.sum()


class Assays:
    def __init__(self, count: int = 5) -> None:
        generator = torch.Generator().manual_seed(13)
        self.tables = torch.randn(count, SAMPLES, GENES, generator=generator) * 1.5
        self.measured = torch.rand(self.tables.shape, generator=generator) < 0.6

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.tables, self.measured, strict=True)


def training(loss: HuberOnSelected) -> pm.Training:
    torch.manual_seed(0)
    model = ExpressionNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return pm.Training(model, loss, optimizer, Assays(), unit="samples", per_step=SAMPLES)


def slow() -> pm.Training:
    return training(HuberOnSelected())


def fast() -> pm.Training:
    return training(HuberEverywhere())
