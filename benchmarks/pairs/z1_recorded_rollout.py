"""Planning by random shooting: a learned model of a vehicle rolls many candidate action sequences forward."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import pyrometer as pm


@dataclass
class Limits:
    candidates: int = 2048
    horizon: int = 20
    state: int = 6
    action: int = 2


class Dynamics(nn.Module):
    def __init__(self, limits: Limits, width: int = 48) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(limits.state + limits.action, width),
            nn.ELU(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, limits.state),
        )

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        return state + 0.1 * self.network(torch.cat([state, action], dim=-1))


class Planner:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.dynamics = Dynamics(limits)
        self.goal = torch.ones(limits.state)
        self.actions = torch.randn(limits.horizon, limits.candidates, limits.action)

    def cost(self, state: Tensor, action: Tensor) -> Tensor:
        return (state - self.goal).square().sum(-1) + 0.01 * action.square().sum(-1)

    def plan(self, state: Tensor) -> Tensor:
        """The first action of the cheapest sequence."""
        states = state.expand(self.limits.candidates, -1)
        total = torch.zeros(self.limits.candidates)
        for action in self.actions:
            states = self.dynamics(states, action)
            total = total + self.cost(states, action)
        return self.actions[0, total.argmin()]


class QuietPlanner(Planner):
    @torch.inference_mode()
    def plan(self, state: Tensor) -> Tensor:
        return super().plan(state)


def control(planner: type[Planner]) -> pm.Call:
    torch.manual_seed(0)
    limits = Limits()
    return pm.Call(planner(limits).plan, torch.zeros(limits.state), unit="plans")


def slow() -> pm.Call:
    return control(Planner)


def fast() -> pm.Call:
    return control(QuietPlanner)
