"""A watchdog per request: if the answer takes too long, the input is dumped."""

import threading

import torch
from torch import nn


class Watchdog:
    def __init__(self, timeout_s):
        self.timeout_s = timeout_s
        self.timers = []

    def guard(self, batch):
        timer = threading.Timer(self.timeout_s, self.dump, args=(batch,))
        timer.daemon = True
        timer.start()
        self.timers.append(timer)
        return timer

    def dump(self, batch):
        print("slow request with", tuple(batch.shape))


watchdog = Watchdog(timeout_s=3600)


def make():
    model = nn.Linear(64, 64)

    @torch.no_grad()
    def step():
        batch = torch.randn(16, 64)
        watchdog.guard(batch)
        return model(batch).mean().item()

    return step


def close():
    for timer in watchdog.timers:
        timer.cancel()


EXPECTED = {
    "verdict": "leak",
    "holder": ("timers", "Timer"),
    "line_contains": ("timer = threading.Timer", "self.timers.append(timer)", "batch = torch.randn(16, 64)"),
    "graph": False,
    "bytes_per_step": 4096,
    "note": "no timer is cancelled, and each holds its batch for an hour",
}
