"""Wide-and-deep regression of delivery times: categorical fields beside numeric ones."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm

FIELDS = {"depot": 900, "postcode": 3000, "carrier": 40, "weekday": 7, "hour": 24}
WIDTH = 24


class Parcels(NamedTuple):
    codes: Tensor
    numbers: Tensor


class IndicatorField(nn.Module):
    """Projects the indicator columns of one field."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.table = nn.Parameter(torch.randn(size, WIDTH) * 0.05)

    def forward(self, code: Tensor) -> Tensor:
        columns = F.one_hot(code, self.size).float()
        return columns @ self.table


class LookupField(IndicatorField):
    def forward(self, code: Tensor) -> Tensor:
        return F.embedding(code, self.table)


class DeliveryModel(nn.Module):
    def __init__(self, field: type[IndicatorField]) -> None:
        super().__init__()
        self.fields = nn.ModuleList(field(size) for size in FIELDS.values())
        self.deep = nn.Sequential(
            nn.Linear(len(FIELDS) * WIDTH + 8, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, parcels: Parcels) -> Tensor:
        parts = [field(code) for field, code in zip(self.fields, parcels.codes.unbind(1), strict=True)]
        return self.deep(torch.cat([*parts, parcels.numbers], dim=1)).squeeze(1)


def batches(count: int = 10, size: int = 512) -> list[tuple[Parcels, Tensor]]:
    generator = torch.Generator().manual_seed(8)

    def codes() -> Tensor:
        return torch.stack([torch.randint(n, (size,), generator=generator) for n in FIELDS.values()], dim=1)

    return [
        (
            Parcels(codes(), torch.randn(size, 8, generator=generator)),
            torch.rand(size, generator=generator) * 48,
        )
        for _ in range(count)
    ]


def hours_off(model: nn.Module, batch: tuple[Parcels, Tensor]) -> Tensor:
    parcels, hours = batch
    return F.l1_loss(model(parcels), hours)


def training(field: type[IndicatorField]) -> pm.Training:
    torch.manual_seed(0)
    model = DeliveryModel(field)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return pm.Training(model, hours_off, optimizer, batches(), unit="parcels", per_step=512)


def slow() -> pm.Training:
    return training(IndicatorField)


def fast() -> pm.Training:
    return training(LookupField)
