"""Cell detection in microscopy as centre points: each image has a map with a bump at every cell."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm

SIZE = 96
SIGMA = 2.5
REACH = 8


def bumps_by_pixel(centres: np.ndarray) -> np.ndarray:
    canvas = np.zeros((SIZE, SIZE), dtype=np.float32)
    for x, y in centres:
        left, right = max(0, int(x) - REACH), min(SIZE, int(x) + REACH + 1)
        top, bottom = max(0, int(y) - REACH), min(SIZE, int(y) + REACH + 1)
        for row in range(top, bottom):
            for column in range(left, right):
                distance = (row - y) ** 2 + (column - x) ** 2
                value = math.exp(-distance / (2 * SIGMA**2))
                if value > canvas[row, column]:
                    canvas[row, column] = value
    return canvas


def bumps_by_window(centres: np.ndarray) -> np.ndarray:
    canvas = np.zeros((SIZE, SIZE), dtype=np.float32)
    for x, y in centres:
        left, right = max(0, int(x) - REACH), min(SIZE, int(x) + REACH + 1)
        top, bottom = max(0, int(y) - REACH), min(SIZE, int(y) + REACH + 1)
        rows, columns = np.ogrid[top:bottom, left:right]
        bump = np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * SIGMA**2))
        window = canvas[top:bottom, left:right]
        np.maximum(window, bump, out=window, casting="same_kind")
    return canvas


class Cells(Dataset):
    def __init__(self, draw, count: int = 128) -> None:
        random = np.random.default_rng(5)
        self.draw = draw
        self.images = random.random((count, 1, SIZE, SIZE), dtype=np.float32)
        self.centres = [random.uniform(0, SIZE, (random.integers(6, 14), 2)) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.images[index], self.draw(self.centres[index])[None]


class CellNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 12, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 4, 3, padding=1),
            nn.PixelShuffle(2),
        )


def focal(logits: Tensor, heat: Tensor) -> Tensor:
    weight = (heat - logits.sigmoid()).abs().square()
    return (weight * nn.functional.binary_cross_entropy_with_logits(logits, heat, reduction="none")).mean()


def training(draw) -> pm.Training:
    torch.manual_seed(0)
    model = CellNet()
    loader = DataLoader(Cells(draw), batch_size=8)
    return pm.Training(model, focal, torch.optim.SGD(model.parameters(), lr=0.1), loader, unit="images")


def slow() -> pm.Training:
    return training(bumps_by_pixel)


def fast() -> pm.Training:
    return training(bumps_by_window)
