"""Sensor readings in a ring buffer."""

import torch


class RingBuffer:
    def __init__(self, capacity, width):
        self.data = torch.zeros(capacity, width)
        self.next = 0

    def push(self, reading):
        self.data[self.next % len(self.data)] = reading
        self.next += 1

    def latest(self, count):
        index = torch.arange(self.next - count, self.next) % len(self.data)
        return self.data[index]


def make():
    history = RingBuffer(64, 12)

    def step():
        history.push(torch.randn(12))
        return history.latest(5).mean().item()

    return step


EXPECTED = {"verdict": "stable", "note": "one tensor, written in place"}
