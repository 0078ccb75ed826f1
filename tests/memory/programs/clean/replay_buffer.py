"""A DQN agent with experience replay."""

import random
from collections import deque

import torch
from torch import nn


class ReplayBuffer:
    def __init__(self, capacity):
        self.transitions = deque(maxlen=capacity)

    def push(self, *transition):
        self.transitions.append(transition)

    def sample(self, size):
        picked = random.choices(self.transitions, k=size)
        return torch.stack([t[0] for t in picked]), torch.stack([t[2] for t in picked])


def make():
    q_network = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 4))
    optimizer = torch.optim.Adam(q_network.parameters(), lr=1e-3)
    memory = ReplayBuffer(capacity=10)
    world = {"state": torch.zeros(24)}

    def step():
        state = world["state"]
        with torch.no_grad():
            action = q_network(state).argmax()
        next_state = state * 0.9 + torch.randn(24)
        memory.push(state, action, next_state)
        world["state"] = next_state
        states, next_states = memory.sample(8)
        loss = (q_network(states).mean() - 0.99 * q_network(next_states).detach().mean()).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {"verdict": "allocator warm-up", "note": "the buffer is full after ten steps"}
