"""A critic with a gradient penalty, which needs second derivatives."""

import torch
from torch import nn


def make():
    critic = nn.Sequential(nn.Linear(16, 32), nn.Softplus(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)

    def step():
        real, fake = torch.randn(12, 16), torch.randn(12, 16)
        mixed = torch.lerp(real, fake, torch.rand(12, 1)).requires_grad_()
        (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (gradient.norm(dim=1) - 1).square().mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "autograd.grad stores no gradient, so that there is no cycle"}
