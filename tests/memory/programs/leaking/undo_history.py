"""An interactive editor for images with undo."""

import torch
from torch.nn import functional


class Editor:
    def __init__(self, image):
        self.image = image
        self.undo_stack = []
        self.redo_stack = []

    def apply(self, edit):
        self.undo_stack.append(self.image)
        self.redo_stack.clear()
        self.image = edit(self.image)

    def undo(self):
        self.redo_stack.append(self.image)
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


EXPECTED = {
    "verdict": "leak",
    "holder": ("undo_stack",),
    "line_contains": ("self.undo_stack.append(self.image)", "return functional.avg_pool2d"),
    "graph": False,
    "bytes_per_step": 12288,
    "note": "two pushes and one pop per step",
}
