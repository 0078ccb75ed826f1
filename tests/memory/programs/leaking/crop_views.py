"""Face crops are kept for the gallery; the frames themselves are not needed any more."""

import torch


class Gallery:
    def __init__(self):
        self.crops = []

    def add(self, frame, box):
        top, left, height, width = box
        self.crops.append(frame[:, top : top + height, left : left + width])


def camera(height=96, width=96):
    return torch.rand(3, height, width)


def make():
    gallery = Gallery()

    def step():
        frame = camera()
        box = (8, 8, 12, 12)
        gallery.add(frame, box)
        return gallery.crops[-1].mean().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("crops",),
    "line_contains": ("self.crops.append(frame", "return torch.rand(3, height, width)"),
    "graph": False,
    "bytes_per_step": 110592,
    "note": "a crop is a view of 1728 bytes that keeps the frame of 110592",
}
