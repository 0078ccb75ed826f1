"""A watchdog per request, cancelled when the answer is there."""

import threading

import torch
from torch import nn


class Watchdog:
    def __init__(self, timeout_s):
        self.timeout_s = timeout_s

    def guard(self, batch):
        timer = threading.Timer(self.timeout_s, self.dump, args=(batch,))
        timer.daemon = True
        timer.start()
        return timer

    def dump(self, batch):
        print("slow request with", tuple(batch.shape))


def make():
    model = nn.Linear(64, 64)
    watchdog = Watchdog(timeout_s=3600)

    @torch.no_grad()
    def step():
        batch = torch.randn(16, 64)
        timer = watchdog.guard(batch)
        answer = model(batch).mean().item()
        timer.cancel()
        timer.join()
        return answer

    return step


EXPECTED = {"verdict": "stable", "note": "the timer's thread ends when it is cancelled"}
