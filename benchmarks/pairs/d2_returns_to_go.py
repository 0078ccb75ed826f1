"""The learning half of a policy-gradient agent: discounted returns of collected episodes, then one update."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import pyrometer as pm

GAMMA = 0.97


@dataclass
class Episode:
    observations: Tensor
    actions: Tensor
    rewards: Tensor


def play(count: int, length: int) -> list[Episode]:
    generator = torch.Generator().manual_seed(11)
    return [
        Episode(
            torch.randn(length, 16, generator=generator),
            torch.randint(6, (length,), generator=generator),
            torch.randn(length, generator=generator),
        )
        for _ in range(count)
    ]


class Agent:
    def __init__(self) -> None:
        self.policy = nn.Sequential(
            nn.Linear(16, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 6)
        )
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-4, fused=True)

    def returns(self, rewards: Tensor) -> Tensor:
        result = torch.zeros_like(rewards)
        for t in range(len(rewards)):
            powers = GAMMA ** torch.arange(len(rewards) - t)
            result[t] = (rewards[t:] * powers).sum()
        return result

    def learn(self, episodes: list[Episode]) -> Tensor:
        observations = torch.cat([episode.observations for episode in episodes])
        actions = torch.cat([episode.actions for episode in episodes])
        returns = torch.cat([self.returns(episode.rewards) for episode in episodes])
        advantage = (returns - returns.mean()) / returns.std()
        chosen = Categorical(logits=self.policy(observations))
        loss = -(chosen.log_prob(actions) * advantage).mean() - 0.01 * chosen.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class ScanningAgent(Agent):
    def returns(self, rewards: Tensor) -> Tensor:
        to_go, running = [], 0.0
        for reward in reversed(rewards.tolist()):
            running = reward + GAMMA * running
            to_go.append(running)
        return torch.tensor(to_go[::-1])


def learner(agent: type[Agent]) -> pm.Call:
    torch.manual_seed(0)
    return pm.Call(agent().learn, play(8, 120), unit="updates")


def slow() -> pm.Call:
    return learner(Agent)


def fast() -> pm.Call:
    return learner(ScanningAgent)
