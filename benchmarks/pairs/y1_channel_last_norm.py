"""Image restoration with separable blocks whose normalisation runs over the channels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of (N, C, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.permute(0, 2, 3, 1).contiguous()
        rows = F.layer_norm(rows, self.weight.shape, self.weight, self.bias)
        return rows.permute(0, 3, 1, 2).contiguous()


class Restorer(nn.Module):
    def __init__(self, channels: int = 32, depth: int = 6) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.norms = nn.ModuleList(ChannelNorm(channels) for _ in range(depth))
        self.widen = nn.ModuleList(nn.Linear(channels, channels) for _ in range(depth))
        self.leave = nn.Conv2d(channels, 3, 3, padding=1)

    def mix(self, x: Tensor) -> Tensor:
        for norm, widen in zip(self.norms, self.widen, strict=True):
            pixels = norm(x).permute(0, 2, 3, 1).contiguous()
            x = x + F.silu(widen(pixels)).permute(0, 3, 1, 2).contiguous()
        return x

    def forward(self, image: Tensor) -> Tensor:
        return image + self.leave(self.mix(self.enter(image)))


class PixelRestorer(Restorer):
    def mix(self, x: Tensor) -> Tensor:
        pixels = x.permute(0, 2, 3, 1).contiguous()
        for norm, widen in zip(self.norms, self.widen, strict=True):
            normed = F.layer_norm(pixels, norm.weight.shape, norm.weight, norm.bias)
            pixels = pixels + F.silu(widen(normed))
        return pixels.permute(0, 3, 1, 2).contiguous()


def restore(model: type[Restorer]) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(model(), torch.rand(2, 3, 128, 128), unit="images")


def slow() -> pm.Inference:
    return restore(Restorer)


def fast() -> pm.Inference:
    return restore(PixelRestorer)
