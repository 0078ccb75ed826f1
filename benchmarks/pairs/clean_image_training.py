"""Trains a small residual classifier on thumbnails that lie in memory."""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pyrometer as pm


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.body(x))


class Thumbnails(nn.Module):
    def __init__(self, classes: int = 20, width: int = 48) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 4, stride=4), nn.ReLU(inplace=True))
        self.body = nn.Sequential(Residual(width), Residual(width))
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(self.stem(images)).mean((2, 3)))


def thumbnails(count: int = 512) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, 3, 64, 64, generator=generator)
    return TensorDataset(images, torch.randint(20, (count,), generator=generator))


def workload() -> pm.Training:
    torch.manual_seed(0)
    model = Thumbnails().to(memory_format=torch.channels_last)
    loader = DataLoader(thumbnails(), batch_size=16, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    return pm.Training(model, nn.CrossEntropyLoss(), optimizer, loader, unit="images")
