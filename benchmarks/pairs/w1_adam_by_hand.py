"""Trains a keypoint mixer with decoupled weight decay, with an optimizer carried over from an older code base."""

import math

import torch
from torch import Tensor, nn

import pyrometer as pm

KEYPOINTS, FRAMES = 17, 24


class MixerBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_time, self.norm_channels = nn.LayerNorm(width), nn.LayerNorm(width)
        self.time = nn.Sequential(nn.Linear(FRAMES, FRAMES), nn.GELU(), nn.Linear(FRAMES, FRAMES))
        self.channels = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.time(self.norm_time(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm_channels(x))


class ActionNet(nn.Module):
    def __init__(self, width: int = 128, depth: int = 8, actions: int = 30) -> None:
        super().__init__()
        self.read = nn.Linear(2 * KEYPOINTS, width)
        self.blocks = nn.Sequential(*(MixerBlock(width) for _ in range(depth)))
        self.head = nn.Linear(width, actions)

    def forward(self, tracks: Tensor) -> Tensor:
        return self.head(self.blocks(self.read(tracks)).mean(1))


class DecoupledAdam(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["step"] = 0
                    state["mean"], state["square"] = torch.zeros_like(weight), torch.zeros_like(weight)
                state["step"] += 1
                state["mean"] = beta1 * state["mean"] + (1 - beta1) * weight.grad
                state["square"] = beta2 * state["square"] + (1 - beta2) * weight.grad * weight.grad
                mean = state["mean"] / (1 - beta1 ** state["step"])
                spread = torch.sqrt(state["square"]) / math.sqrt(1 - beta2 ** state["step"]) + group["eps"]
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.sub_(group["lr"] * mean / spread)


def tracks(count: int = 8, batch: int = 2) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(batch, FRAMES, 2 * KEYPOINTS, generator=generator),
            torch.randint(30, (batch,), generator=generator),
        )
        for _ in range(count)
    ]


def training(optimizer) -> pm.Training:
    torch.manual_seed(0)
    model = ActionNet()
    return pm.Training(
        model,
        nn.CrossEntropyLoss(),
        optimizer(model.parameters(), lr=1e-3, weight_decay=1e-2),
        tracks(),
        unit="tracks",
    )


def fused_adamw(parameters, **settings) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, fused=True, **settings)


def slow() -> pm.Training:
    return training(DecoupledAdam)


def fast() -> pm.Training:
    return training(fused_adamw)
