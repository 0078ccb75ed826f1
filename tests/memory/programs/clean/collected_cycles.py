"""Cyclic garbage is collected by hand, each fifteen steps, where a pause does no harm."""

import gc

import torch


class Graph:
    def __init__(self):
        self.nodes = []

    def add(self, value):
        node = {"value": value, "graph": self}
        self.nodes.append(node)
        return node


def make():
    counter = {"step": 0}

    def step():
        graph = Graph()
        for _ in range(3):
            graph.add(torch.randn(10, 50))
        counter["step"] += 1
        if counter["step"] % 15 == 0:
            gc.collect()
        return sum(node["value"].mean().item() for node in graph.nodes)

    return step


EXPECTED = {"verdict": "stable", "note": "a sawtooth of fifteen steps"}
