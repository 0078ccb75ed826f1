"""Ray Serve with batches in one replica, at a port."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray import serve
from starlette.requests import Request

HERE = str(Path(__file__).parent)


@serve.deployment(num_replicas=1, max_ongoing_requests=512, ray_actor_options={"num_cpus": 0.5})  # type: ignore[misc]
class Model:
    """The model, one batch at a time."""

    def __init__(self) -> None:
        import torch

        sys.path.insert(0, HERE)
        from model import make_model

        torch.set_num_threads(1)
        self.torch, self.model = torch, make_model()

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)  # type: ignore[misc]
    async def infer(self, inputs: list[list[float]]) -> list[Any]:
        """Run the model."""
        with self.torch.inference_mode():
            return self.model(self.torch.tensor(inputs)).tolist()  # type: ignore[no-any-return]

    async def __call__(self, request: Request) -> dict[str, Any]:
        """Answer one request."""
        return {"output": await self.infer((await request.json())["input"])}


if __name__ == "__main__":
    ray.init(include_dashboard=False, log_to_driver=False, num_cpus=2)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(Model.bind(), name="default", route_prefix="/")
    while True:
        time.sleep(3600)
