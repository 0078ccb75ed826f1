"""A tree search over latent states, whose nodes know parent and children."""

import torch
from torch import nn


class Node:
    def __init__(self, latent, parent=None):
        self.latent = latent
        self.parent = parent
        self.children = []


class Search:
    def __init__(self):
        self.dynamics = nn.Linear(32, 32)

    @torch.no_grad()
    def run(self, observation):
        root = Node(self.dynamics(observation))
        for action in range(4):
            child = Node(torch.tanh(self.dynamics(root.latent) + action), parent=root)
            root.children.append(child)
        best = max(root.children, key=lambda node: node.latent.mean().item())
        return best.latent.sum().item()


def make():
    search = Search()
    observation = torch.randn(16, 32)

    def step():
        return search.run(observation)

    return step


EXPECTED = {"verdict": "stable", "note": "cycles, which the collector frees from time to time"}
