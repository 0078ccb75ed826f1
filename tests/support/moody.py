"""A model to serve whose inputs say what it does: it raises, hangs, waits or loses rows; and requests for it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import torch
from torch import nn

WIDTH = 4
PATH = "/v2/models/moody/infer"
RAISES, HANGS, LOSES_ROWS, WAITS = 1e4, 2e4, 3e4, 4e4


class Moody(nn.Module):
    """Doubles its input, unless the first value of a row says otherwise."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(2 * torch.eye(WIDTH))
        self.go_on = threading.Event()
        self.is_waiting = threading.Event()
        self.batches = []

    def forward(self, x):
        moods = set(x[:, 0].tolist())
        self.batches.append(len(x))
        if RAISES in moods:
            raise ValueError("a bad row")
        if HANGS in moods or WAITS in moods:
            self.is_waiting.set()
            self.go_on.wait(60)
        if LOSES_ROWS in moods:
            return self.linear(x)[:-1]
        return self.linear(x)


def body_of(rows, **more):
    """A request with these rows."""
    values = [float(value) for row in rows for value in row]
    x = {"name": "x", "shape": [len(rows), WIDTH], "datatype": "FP32", "data": values}
    return {"inputs": [x], **more}


def row(first, *rest):
    return [first, *rest, *[1.0] * (WIDTH - 1 - len(rest))]


def infer(client, *rows, path=PATH, **more):
    return client.post(path, json=body_of(rows, **more))


def beside(url, *rows, **more):
    """A request in a thread of its own."""
    pool = ThreadPoolExecutor(1)
    return pool.submit(lambda: httpx.post(url + PATH, json=body_of(rows, **more), timeout=60))
