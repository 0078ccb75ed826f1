"""Density of points under a continuous flow: the velocity field is integrated together with its divergence."""

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

import pyrometer as pm

DIMENSIONS, WIDTH, EULER_STEPS = 12, 64, 6


class Velocity(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(DIMENSIONS + 1, WIDTH)
        self.leave = nn.Linear(WIDTH, DIMENSIONS)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.leave(torch.tanh(self.enter(torch.cat([x, t], dim=-1))))


class AutogradFlow:
    def __init__(self) -> None:
        self.velocity = Velocity().requires_grad_(requires_grad=False)

    def rate(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            speed = self.velocity(x, t)
            divergence = torch.zeros(len(x))
            for axis in range(DIMENSIONS):
                (slope,) = torch.autograd.grad(speed[:, axis].sum(), x, retain_graph=True)
                divergence = divergence + slope[:, axis]
        return speed.detach(), divergence

    def log_density(self, x: Tensor) -> Tensor:
        change = torch.zeros(len(x))
        for step in reversed(range(EULER_STEPS)):
            t = torch.full((len(x), 1), (step + 1) / EULER_STEPS)
            speed, divergence = self.rate(x, t)
            x = x - speed / EULER_STEPS
            change = change + divergence / EULER_STEPS
        return -0.5 * (x.square() + torch.tensor(2 * torch.pi).log()).sum(1) - change


class ClosedFormFlow(AutogradFlow):
    def rate(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """The trace of W2 diag(1 - tanh²) W1, which needs no second pass."""
        hidden = torch.tanh(self.velocity.enter(torch.cat([x, t], dim=-1)))
        cross = (self.velocity.leave.weight.T * self.velocity.enter.weight[:, :DIMENSIONS]).sum(1)
        return self.velocity.leave(hidden), (1 - hidden.square()) @ cross


def agrees_with_jacobian(flow: AutogradFlow, x: Tensor, t: Tensor) -> bool:
    """For tests: the trace of the Jacobian by reverse mode."""
    jacobians = vmap(jacrev(flow.velocity))(x, t)
    return torch.allclose(jacobians.diagonal(dim1=1, dim2=2).sum(1), flow.rate(x, t)[1], atol=1e-4)


def slow() -> pm.Call:
    torch.manual_seed(0)
    return pm.Call(AutogradFlow().log_density, torch.randn(256, DIMENSIONS), unit="points", per_step=256)


def fast() -> pm.Call:
    torch.manual_seed(0)
    return pm.Call(ClosedFormFlow().log_density, torch.randn(256, DIMENSIONS), unit="points", per_step=256)
