"""Chat sessions: the state of each user waits for the next message."""

import torch
from torch import nn


class ChatServer:
    def __init__(self):
        self.model = nn.GRU(24, 24, batch_first=True)
        self.sessions = {}

    @torch.no_grad()
    def reply(self, session_id, message):
        state = self.sessions.get(session_id)
        output, state = self.model(message, state)
        self.sessions[session_id] = state
        return output[:, -1].argmax().item()


def make():
    server = ChatServer()
    arrivals = {"count": 0}

    def step():
        arrivals["count"] += 1
        regular = f"regular-{arrivals['count'] % 5}"
        visitor = f"visitor-{arrivals['count']}"
        server.reply(regular, torch.randn(1, 6, 24))
        return server.reply(visitor, torch.randn(1, 6, 24))

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("sessions",),
    "line_contains": ("self.sessions[session_id] = state", "output, state = self.model(message, state)"),
    "graph": False,
    "bytes_per_step": 96,
    "note": "five regulars are overwritten, but each visitor comes once and stays",
}
