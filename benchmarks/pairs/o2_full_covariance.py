"""Proximal policy optimisation for a many-jointed arm: one update on a minibatch of stored transitions."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal

import pyrometer as pm

OBSERVATIONS, JOINTS, MINIBATCH = 40, 24, 512


@dataclass
class Transitions:
    observation: Tensor
    action: Tensor
    log_prob: Tensor
    advantage: Tensor


class GaussianPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Sequential(
            nn.Linear(OBSERVATIONS, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, JOINTS)
        )
        self.log_std = nn.Parameter(torch.full((JOINTS,), -0.5))

    def forward(self, observation: Tensor) -> Distribution:
        mean = self.mean(observation)
        variance = self.log_std.exp().square().expand_as(mean)
        return MultivariateNormal(mean, covariance_matrix=torch.diag_embed(variance))


class FactorisedPolicy(GaussianPolicy):
    def forward(self, observation: Tensor) -> Distribution:
        mean = self.mean(observation)
        return Independent(Normal(mean, self.log_std.exp().expand_as(mean)), 1)


def clipped_objective(model: nn.Module, batch: Transitions) -> Tensor:
    now = model(batch.observation)
    ratio = (now.log_prob(batch.action) - batch.log_prob).exp()
    gain = torch.minimum(ratio * batch.advantage, ratio.clamp(0.8, 1.2) * batch.advantage)
    return -gain.mean() - 0.001 * now.entropy().mean()


def rollouts(count: int = 6) -> list[Transitions]:
    generator = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    return [
        Transitions(
            normal(MINIBATCH, OBSERVATIONS),
            normal(MINIBATCH, JOINTS) * 0.6,
            normal(MINIBATCH) * 0.1 - 24,
            normal(MINIBATCH),
        )
        for _ in range(count)
    ]


def learner(policy: type[GaussianPolicy]) -> pm.Training:
    torch.manual_seed(0)
    model = policy()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    return pm.Training(
        model, clipped_objective, optimizer, rollouts(), unit="transitions", per_step=MINIBATCH
    )


def slow() -> pm.Training:
    return learner(GaussianPolicy)


def fast() -> pm.Training:
    return learner(FactorisedPolicy)
