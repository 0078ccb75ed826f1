"""A DQN agent with experience replay."""

import random

import torch
from torch import nn


class ReplayBuffer:
    def __init__(self):
        self.transitions = []

    def push(self, state, action, reward, next_state):
        self.transitions.append((state, action, reward, next_state))

    def sample(self, size):
        picked = random.choices(self.transitions, k=size)
        return torch.stack([t[0] for t in picked]), torch.stack([t[3] for t in picked])


def make():
    q_network = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 4))
    optimizer = torch.optim.Adam(q_network.parameters(), lr=1e-3)
    memory = ReplayBuffer()
    world = {"state": torch.zeros(24)}

    def step():
        state = world["state"]
        with torch.no_grad():
            action = q_network(state).argmax()
        next_state = state * 0.9 + torch.randn(24)
        memory.push(state, action, 1.0, next_state)
        world["state"] = next_state
        states, next_states = memory.sample(16)
        loss = (q_network(states).mean() - 0.99 * q_network(next_states).detach().mean()).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("transitions", "memory"),
    "line_contains": (
        "self.transitions.append((state, action, reward, next_state))",
        "next_state = state * 0.9 + torch.randn(24)",
        "action = q_network(state).argmax()",
    ),
    "graph": False,
    "bytes_per_step": 104,
    "note": "a state of 96 bytes and an action of 8 for each transition, without a bound",
}
