"""Anomaly scores for machine vibrations: a small autoencoder, called for each new window."""

import torch
from torch import Tensor, nn

import pyrometer as pm

WINDOW = 1024


class VibrationNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv1d(3, 32, 9, stride=4, padding=4),
            nn.ReLU(),
            nn.Conv1d(32, 48, 9, stride=4, padding=4),
            nn.ReLU(),
        )
        self.decode = nn.Sequential(
            nn.ConvTranspose1d(48, 32, 8, stride=4, padding=2),
            nn.ReLU(),
            nn.ConvTranspose1d(32, 3, 8, stride=4, padding=2),
        )
        self.scale = nn.Parameter(torch.ones(3, 1))

    def forward(self, window: Tensor) -> Tensor:
        centred = (window - window.mean(-1, keepdim=True)) / (window.std(-1, keepdim=True) + 1e-6)
        restored = self.decode(self.encode(centred))
        return ((restored - centred) * self.scale).square().mean((1, 2)).sqrt()


def configure(threads: int) -> None:
    """Called once when the service starts."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)


def monitor() -> pm.Inference:
    return pm.Inference(VibrationNet(), lambda: torch.randn(16, 3, WINDOW), unit="windows")


def slow() -> pm.Inference:
    configure(threads=32)
    return monitor()


def fast() -> pm.Inference:
    configure(threads=1)
    return monitor()
