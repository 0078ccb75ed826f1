"""A small video encoder with awkward convolutions: 3-d kernels that never look beyond one frame.

    pyrometer check examples/video_encoder.py:workload    # which operator, how often, on which shapes, on which line
    pyrometer bench examples/video_encoder.py:workload --vs examples/video_encoder.py:fixed

For one clip with small kernels, a CPU's fast convolution is not used in three dimensions: torch falls back to
`slow_conv3d`. A kernel of 1×3×3 is a 2-d one for every frame; `fixed` says so, with the frames as the batch, and gives
the same features.

Shapes in names: B clips, C channels, T frames, H and W pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import pyrometer as pm

CHANNELS = 16


class FrameConv3d(nn.Module):
    """A convolution within each frame, written as a 3-d one."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, (1, 3, 3), padding=(0, 1, 1))

    def forward(self, clips_BCTHW: Tensor) -> Tensor:  # all frames at once
        features: Tensor = self.conv(clips_BCTHW)
        return features


class FrameConv2d(nn.Module):
    """The same as a 2-d one, with the frames as the batch."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, clips_BCTHW: Tensor) -> Tensor:
        frames = clips_BCTHW.transpose(1, 2)
        features: Tensor = self.conv(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
        return features.transpose(1, 2)


class VideoEncoder(nn.Module):
    """Clips (B, 3, T, H, W) to features (B, CHANNELS)."""

    def __init__(self, layer: type[FrameConv3d | FrameConv2d]) -> None:
        super().__init__()
        self.stem = layer(3, CHANNELS)
        self.stem_norm = nn.BatchNorm3d(CHANNELS)
        self.block = layer(CHANNELS, CHANNELS)
        self.block_norm = nn.BatchNorm3d(CHANNELS)

    def forward(self, clips_BCTHW: Tensor) -> Tensor:
        x = torch.relu(self.stem_norm(self.stem(clips_BCTHW)))
        x = torch.relu(self.block_norm(self.block(x)))
        return x.mean(dim=(2, 3, 4))


def build(layer: type[FrameConv3d | FrameConv2d]) -> VideoEncoder:
    """An encoder in evaluation mode; with either layer it computes the same."""
    torch.manual_seed(0)
    return VideoEncoder(layer).eval()


def inference(layer: type[FrameConv3d | FrameConv2d]) -> pm.Inference:
    """One clip of eight frames at a time."""
    model = build(layer)
    torch.manual_seed(1)
    return pm.Inference(model, (torch.randn(1, 3, 8, 64, 64),), unit="clips", per_step=1)


def workload() -> pm.Inference:
    """With 3-d convolutions."""
    return inference(FrameConv3d)


def fixed() -> pm.Inference:
    """With 2-d convolutions."""
    return inference(FrameConv2d)
