"""An interactive editor for images with ten levels of undo."""

from collections import deque

import torch
from torch.nn import functional


class Editor:
    def __init__(self, image, levels=10):
        self.image = image
        self.undo_stack = deque(maxlen=levels)

    def apply(self, edit):
        self.undo_stack.append(self.image)
        self.image = edit(self.image)

    def undo(self):
        self.image = self.undo_stack.pop()


def blur(image):
    return functional.avg_pool2d(image[None], 3, stride=1, padding=1)[0]


def make():
    editor = Editor(torch.rand(3, 32, 32))

    def step():
        editor.apply(blur)
        editor.apply(lambda image: image.clamp(0.1, 0.9))
        editor.undo()
        return editor.image.mean().item()

    return step


EXPECTED = {"verdict": "allocator warm-up", "note": "ten levels, filled by one per step"}
