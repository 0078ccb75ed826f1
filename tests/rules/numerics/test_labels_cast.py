from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm

FIRES = {
    "labels": "import torch\ny = labels.half()  # <-",
    "dict entry": "import torch\ny = batch['input_ids'].to(device, torch.bfloat16)  # <-",
    "attribute": "import torch\ny = batch.position_ids.to(dtype=torch.float16)  # <-",
    "whole batch": """
        import torch
        batch = {name: value.to(device, torch.bfloat16) for name, value in batch.items()}  # <-
    """,
    "list": "import torch\nbatch = [t.half() for t in batch]  # <-",
    "positions": "import torch\np = torch.arange(4096, dtype=torch.bfloat16)  # <-\nq = torch.arange(0, n, dtype=torch.half)  # <-",
}

SILENT = {
    "floating labels": "import torch\ny = labels.float()\nz = labels.to(device)",
    "images": "import torch\nx = images.half()",
    "soft labels": "import torch\ny = one_hot_labels.half()\nz = soft_labels.bfloat16()",
    "a short range": "import torch\np = torch.arange(256, dtype=torch.bfloat16)\nq = torch.arange(2048, dtype=torch.float16)",
    "a range in float32": "import torch\np = torch.arange(4096, dtype=torch.float32)",
    "the dtype is asked": """
        import torch
        batch = {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in batch.items()}
    """,
    "filtered": "import torch\nbatch = [t.half() for t in batch if t.is_floating_point()]",
    "parameters": "import torch\nlow = [p.half() for p in parameters]",
    "dtype of something": "import torch\nids = ids.to(x.dtype)",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR707", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR707", text) == []


class Positions(nn.Module):
    def __init__(self, dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, ids):
        return torch.sin(ids.to(self.dtype))


def test_values_that_change_are_counted_and_the_advice_keeps_them(findings, watched):
    ids = torch.arange(1000)[None]
    (finding,) = findings("PYR707", watched(pm.Inference(Positions(torch.bfloat16), ids), steps=1))
    assert "494 of 1000 values of input 0 are other numbers" in finding.message
    assert finding.where.line == Positions.forward.__code__.co_firstlineno + 1
    assert findings("PYR707", watched(pm.Inference(Positions(torch.float32), ids), steps=1)) == []


def test_whole_numbers_that_survive_are_silent(findings, watched):
    work = pm.Inference(Positions(torch.bfloat16), torch.arange(200)[None])
    assert findings("PYR707", watched(work, steps=1)) == []
