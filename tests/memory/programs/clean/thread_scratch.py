"""Preprocessing in a pool; each worker has one scratch tensor."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

scratch = threading.local()
pool = ThreadPoolExecutor(max_workers=2)


def normalise(image):
    if not hasattr(scratch, "buffer"):
        scratch.buffer = torch.empty_like(image)
    torch.sub(image, image.mean(), out=scratch.buffer)
    return scratch.buffer.div_(image.std()).sum().item()


def make():
    image = torch.rand(3, 32, 32)

    def step():
        futures = [pool.submit(normalise, image) for _ in range(3)]
        return sum(future.result() for future in futures)

    return step


def close():
    pool.shutdown()


EXPECTED = {"verdict": "stable", "note": "one buffer per thread, whenever its first job comes"}
