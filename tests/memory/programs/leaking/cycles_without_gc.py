"""A tree search over latent states; the collector is off because its pauses hurt latency."""

import gc

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
    gc.disable()
    search = Search()
    observation = torch.randn(16, 32)

    def step():
        return search.run(observation)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("parent", "children", "Node", "cycle"),
    "line_contains": ("root = Node(self.dynamics(observation))", "child = Node(torch.tanh"),
    "graph": False,
    "bytes_per_step": 10240,
    "freed_by_gc": True,
    "note": "parent and children refer to each other, and the cyclic collector is off: five latents of 2048 bytes",
}
