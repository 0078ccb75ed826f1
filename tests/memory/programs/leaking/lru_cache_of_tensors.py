"""The resize filter is expensive, so its result is memoised."""

import functools

import torch
from torch.nn import functional


@functools.lru_cache(maxsize=None)
def thumbnail(image, size):
    return functional.interpolate(image[None], size=(size, size), mode="bilinear")[0]


def load_image():
    return torch.rand(3, 48, 48)


def make():
    def step():
        image = load_image()
        return thumbnail(image, 16).mean().item()

    return step


EXPECTED = {
    "verdict": "growing cache",
    "holder": ("thumbnail", "lru_cache"),
    "line_contains": ("return torch.rand(3, 48, 48)", "return functional.interpolate"),
    "graph": False,
    "bytes_per_step": 30720,
    "note": "tensors hash by identity: the cache never hits, and holds each image and each thumbnail",
}
