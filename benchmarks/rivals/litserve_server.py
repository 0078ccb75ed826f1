"""LitServe with batches, at a port."""

import sys
from typing import Any

import litserve
import torch
from fastapi import Request  # LitServe reads the annotation, and hands over the JSON
from model import BATCH, WAIT_S, make_model


class Api(litserve.LitAPI):  # type: ignore[misc]
    """The model, one batch at a time."""

    def setup(self, device: str) -> None:
        """Load it, in the process that it will run in."""
        del device
        torch.set_num_threads(1)
        self.model = make_model()

    def decode_request(self, request: Request, **_: Any) -> torch.Tensor:
        """The input of a request."""
        return torch.tensor(request["input"])

    def batch(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        """Of all that came."""
        return torch.stack(inputs)

    def predict(self, x: torch.Tensor, **_: Any) -> torch.Tensor:
        """Run the model."""
        with torch.inference_mode():
            return self.model(x)  # type: ignore[no-any-return]

    def unbatch(self, output: torch.Tensor) -> list[Any]:
        """A row each."""
        return output.tolist()  # type: ignore[no-any-return]

    def encode_response(self, output: list[float], **_: Any) -> dict[str, Any]:
        """As JSON."""
        return {"output": output}


if __name__ == "__main__":
    litserve.server._MCP_AVAILABLE = False  # noqa: SLF001 - it does not run with mcp 2, and is not what is measured
    server = litserve.LitServer(Api(max_batch_size=BATCH, batch_timeout=WAIT_S), accelerator="cpu")
    server.run(
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="error",
        generate_client_file=False,
        access_log=False,
    )
