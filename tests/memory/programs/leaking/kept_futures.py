"""Images are augmented in the background, and the futures are remembered for the final check."""

from concurrent.futures import ThreadPoolExecutor

import torch

executor = ThreadPoolExecutor(max_workers=2)


def augment(image):
    return torch.flip(image, dims=(2,)) + 0.01 * torch.randn_like(image)


def make():
    futures = []
    image = torch.rand(3, 40, 40)

    def step():
        future = executor.submit(augment, image)
        futures.append(future)
        return future.result().mean().item()

    return step


def close():
    executor.shutdown()


EXPECTED = {
    "verdict": "leak",
    "holder": ("futures",),
    "line_contains": ("futures.append(future)", "return torch.flip(image, dims=(2,))"),
    "graph": False,
    "bytes_per_step": 19200,
    "note": "a future holds its result",
}
