"""Message passing on a fixed mesh of sensors: the field changes with each call, the positions do not."""

import torch
from torch import Tensor, nn

import pyrometer as pm

SENSORS, NEIGHBOURS, WIDTH = 1500, 6, 24


def nearest(positions: Tensor) -> tuple[Tensor, Tensor]:
    """For each sensor: its neighbours, and the way to them."""
    distances = torch.cdist(positions, positions)
    index = distances.topk(NEIGHBOURS + 1, largest=False).indices[:, 1:]
    return index, positions[index] - positions.unsqueeze(1)


class Messages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(WIDTH + 2, WIDTH), nn.ReLU())
        self.update = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, state: Tensor, index: Tensor, offset: Tensor) -> Tensor:
        received = self.message(torch.cat([state[index], offset], dim=-1)).amax(1)
        return state + self.update(torch.cat([state, received], dim=-1))


class FieldModel(nn.Module):
    def __init__(self, positions: Tensor) -> None:
        super().__init__()
        self.register_buffer("positions", positions)
        self.read, self.write = nn.Linear(3, WIDTH), nn.Linear(WIDTH, 3)
        self.rounds = nn.ModuleList(Messages() for _ in range(2))

    def neighbourhood(self) -> tuple[Tensor, Tensor]:
        return nearest(self.positions)

    def forward(self, field: Tensor) -> Tensor:
        index, offset = self.neighbourhood()
        state = self.read(field)
        for messages in self.rounds:
            state = messages(state, index, offset)
        return field + self.write(state)


class FixedMeshModel(FieldModel):
    def __init__(self, positions: Tensor) -> None:
        super().__init__(positions)
        index, offset = nearest(positions)
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("offset", offset, persistent=False)

    def neighbourhood(self) -> tuple[Tensor, Tensor]:
        return self.index, self.offset


def forecast(model: type[FieldModel]) -> pm.Inference:
    torch.manual_seed(0)
    positions = torch.rand(SENSORS, 2)
    return pm.Inference(model(positions), lambda: torch.randn(SENSORS, 3), unit="sensors")


def slow() -> pm.Inference:
    return forecast(FieldModel)


def fast() -> pm.Inference:
    return forecast(FixedMeshModel)
