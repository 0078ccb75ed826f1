"""Batches are made ahead of time by a thread that is faster than the loop."""

import threading

import torch


class Prefetcher:
    def __init__(self, ahead=2):
        self.ahead = ahead
        self.ready = []
        self.wanted = threading.Semaphore(0)
        self.filled = threading.Semaphore(0)
        self.running = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.running:
            self.wanted.acquire()
            for _ in range(self.ahead):
                self.ready.append(torch.rand(8, 100))
            self.filled.release()

    def next(self):
        self.wanted.release()
        self.filled.acquire()
        return self.ready.pop(0)

    def stop(self):
        self.running = False
        self.wanted.release()
        self.thread.join()


prefetchers = []


def make():
    loader = Prefetcher()
    prefetchers.append(loader)

    def step():
        return loader.next().mean().item()

    return step


def close():
    for loader in prefetchers:
        loader.stop()


EXPECTED = {
    "verdict": "leak",
    "holder": ("ready",),
    "line_contains": ("self.ready.append(torch.rand(8, 100))",),
    "graph": False,
    "bytes_per_step": 3200,
    "note": "two batches are made for each that is taken",
}
