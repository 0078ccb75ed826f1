"""A small inference server; requests in flight are tracked for the status page."""

import torch
from torch import nn


class Server:
    def __init__(self, model):
        self.model = model
        self.in_flight = {}
        self.errors = {}

    def handle(self, request_id, payload):
        self.in_flight[request_id] = payload
        try:
            if torch.isnan(payload).any():
                raise ValueError("payload has NaN")
            return self.model(payload)
        finally:
            del self.in_flight[request_id]


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
        except ValueError as error:
            server.errors[request_id] = str(error)
            return None

    return step


EXPECTED = {"verdict": "stable", "note": "finally takes it out; only the text of the error is kept"}
