"""Preprocessing in a pool; each worker keeps scratch tensors of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

scratch = threading.local()
pool = ThreadPoolExecutor(max_workers=1)


def normalise(image):
    if not hasattr(scratch, "buffers"):
        scratch.buffers = []
    buffer = torch.empty_like(image)
    scratch.buffers.append(buffer)
    torch.sub(image, image.mean(), out=buffer)
    return buffer.div_(image.std())


def make():
    image = torch.rand(3, 32, 32)

    def step():
        return pool.submit(normalise, image).result().mean().item()

    return step


def close():
    pool.shutdown()


EXPECTED = {
    "verdict": "leak",
    "holder": ("scratch", "buffers"),
    "line_contains": ("scratch.buffers.append(buffer)", "buffer = torch.empty_like(image)"),
    "graph": False,
    "bytes_per_step": 12288,
    "note": "the thread's local list grows by one image per call",
}
