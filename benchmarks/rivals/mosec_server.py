"""Mosec, whose server is written in Rust, with batches, at a port."""

from __future__ import annotations

import sys
from typing import Any

import mosec
import torch
from model import BATCH, WAIT_S, make_model


class Model(mosec.Worker):  # type: ignore[misc]
    """The model, one batch at a time."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.model = make_model()

    def forward(self, data: list[dict[str, Any]]) -> list[Any]:
        """Run the model."""
        with torch.inference_mode():
            output = self.model(torch.tensor([one["input"] for one in data]))
        return [{"output": row} for row in output.tolist()]


if __name__ == "__main__":
    sys.argv[1:] = ["--port", sys.argv[1], "--address", "127.0.0.1", "--log-level", "error"]
    server = mosec.Server()
    server.append_worker(Model, num=1, max_batch_size=BATCH, max_wait_time=round(WAIT_S * 1000))
    server.run()
