"""Fine-grained plant classification; a monitor watches for dead and saturated channels."""

from collections import defaultdict

import torch
from torch import Tensor, nn

import pyrometer as pm


class PlantNet(nn.Module):
    def __init__(self, species: int = 50) -> None:
        super().__init__()
        widths = (3, 16, 24, 32, 48)
        stages = []
        for inputs, outputs in zip(widths, widths[1:], strict=False):
            stages.append(
                nn.Sequential(
                    nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
                )
            )
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(widths[-1], species)

    def forward(self, photos: Tensor) -> Tensor:
        return self.head(self.stages(photos).mean((2, 3)))


class ActivationMonitor:
    """Follows the spread of activations at the output of each layer."""

    def __init__(self, levels: tuple[float, ...] = (0.05, 0.5, 0.95)) -> None:
        self.levels = torch.tensor(levels)
        self.spread: dict[str, Tensor] = {}
        self.calls: dict[str, int] = defaultdict(int)

    def observe(self, name: str):
        def hook(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
            self.calls[name] += 1
            channels = output.detach().transpose(0, 1).flatten(1)
            quantiles = torch.quantile(channels, self.levels, dim=1)
            previous = self.spread.get(name, quantiles)
            self.spread[name] = torch.lerp(previous, quantiles, 0.1)

        return hook

    def attach(self, model: nn.Module) -> nn.Module:
        for name, module in model.named_modules():
            if isinstance(module, nn.Conv2d | nn.BatchNorm2d | nn.ReLU):
                module.register_forward_hook(self.observe(name))
        return model


def photos(count: int = 5, batch: int = 8) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(12)
    return [
        (torch.rand(batch, 3, 96, 96, generator=generator), torch.randint(50, (batch,), generator=generator))
        for _ in range(count)
    ]


def training(model: nn.Module) -> pm.Training:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return pm.Training(model, nn.CrossEntropyLoss(label_smoothing=0.1), optimizer, photos(), unit="photos")


def slow() -> pm.Training:
    torch.manual_seed(0)
    return training(ActivationMonitor().attach(PlantNet()))


def fast() -> pm.Training:
    torch.manual_seed(0)
    return training(PlantNet())
