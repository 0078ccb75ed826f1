"""A home-made compile cache: one workspace and mask for every input size."""

import torch


class Specialised:
    def __init__(self, length):
        self.mask = torch.ones(length, length).tril()
        self.workspace = torch.empty(length, 32)

    def __call__(self, x):
        torch.matmul(self.mask, x, out=self.workspace)
        return self.workspace.sum()


class ShapeSpecialiser:
    def __init__(self):
        self.compiled = {}

    def __call__(self, x):
        key = (tuple(x.shape), x.dtype)
        if key not in self.compiled:
            self.compiled[key] = Specialised(len(x))
        return self.compiled[key](x)


def make():
    run = ShapeSpecialiser()
    request = {"length": 16}

    def step():
        request["length"] += 1
        return run(torch.randn(request["length"], 32))

    return step


EXPECTED = {
    "verdict": "growing cache",
    "holder": ("compiled",),
    "line_contains": (
        "self.compiled[key] = Specialised(len(x))",
        "self.mask = torch.ones(length, length).tril()",
        "self.workspace = torch.empty(length, 32)",
    ),
    "graph": False,
    "bytes_per_step": None,
    "note": "each length is new, so that each call adds an entry",
}
