"""A small inference server; requests in flight are tracked for the status page."""

import torch
from torch import nn


class Server:
    def __init__(self, model):
        self.model = model
        self.in_flight = {}
        self.rejected = 0

    def handle(self, request_id, payload):
        self.in_flight[request_id] = payload
        if torch.isnan(payload).any():
            raise ValueError(f"request {request_id} has NaN")
        answer = self.model(payload)
        del self.in_flight[request_id]
        return answer


def make():
    server = Server(nn.Linear(128, 16).requires_grad_(False))
    state = {"next": 0}

    def step():
        request_id = state["next"]
        state["next"] += 1
        payload = torch.randn(4, 128)
        if request_id % 4 == 0:
            payload[0, 0] = float("nan")
        try:
            return server.handle(request_id, payload)
        except ValueError:
            server.rejected += 1
            return None

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("in_flight",),
    "line_contains": ("self.in_flight[request_id] = payload", "payload = torch.randn(4, 128)"),
    "graph": False,
    "bytes_per_step": 512,
    "note": "each fourth request raises before it is taken from the dictionary: 2048 bytes in four steps",
}
