from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm

FIRES = {
    "functional loss": """
        import torch.nn.functional as F
        loss = F.cross_entropy(output.half(), target)  # <-
    """,
    "loss module": """
        from torch import nn
        criterion = nn.CrossEntropyLoss()
        loss = criterion(output.bfloat16(), target)  # <-
    """,
    "loss by name": """
        import torch
        def step(model, criterion, x, y):
            low = model(x).to(torch.float16)
            return criterion(low, y)  # <-
    """,
    "softmax": """
        import torch
        weights = torch.softmax(scores.half(), -1)  # <-
        others = torch.softmax(scores, -1, dtype=torch.float16)  # <-
        third = scores.bfloat16().softmax(-1)  # <-
    """,
    "norm by hand": """
        import torch
        def norm(x):
            h = x.half()
            return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)  # <-
    """,
    "squares": """
        import torch
        total = (x.half() ** 2).sum()  # <-
    """,
}

SILENT = {
    "float32 before": "import torch.nn.functional as F\nloss = F.cross_entropy(output.float(), target)",
    "float32 asked for": "import torch\nw = torch.softmax(scores.half(), -1, dtype=torch.float32).half()\nw = torch.softmax(scores, -1, dtype=torch.float32).to(torch.float16)",
    "not torch": "def half_loss(x):\n    return criterion(x.half(), y)",
    "a model in half": "import torch\nmodel = model.half()\nloss = criterion(model(x), y)",
    "matmul in half": "import torch\ny = (a.half() @ b.half()).float().softmax(-1)",
    "mean in half": "import torch\ny = x.half().mean()",
    "several assignments": "import torch\nx = a.half()\nx = x.float()\ny = torch.softmax(x, -1)",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR706", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR706", text) == []


class Norm(nn.Module):
    def __init__(self, dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        h = x.to(self.dtype)
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def test_a_norm_in_float16_is_observed_and_float32_mends_it(findings, watched):
    x = torch.full((2, 8), 300.0, dtype=torch.float16)
    (finding,) = findings("PYR706", watched(pm.Inference(Norm(torch.float16), x), steps=1))
    assert "a normalisation written by hand squares and sums in float16" in finding.message
    assert finding.where.line == Norm.forward.__code__.co_firstlineno + 2
    assert findings("PYR706", watched(pm.Inference(Norm(torch.float32), x), steps=1)) == []
    assert torch.equal(Norm(torch.float16)(x), torch.zeros_like(x))  # its squares are infinite
    assert torch.allclose(Norm(torch.float32)(x), torch.ones_like(x))


def test_torchs_own_layers_in_half_are_silent(findings, watched):
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Softmax(-1)).bfloat16()
    evidence = watched(pm.Inference(model, torch.randn(4, 8, dtype=torch.bfloat16)), steps=1)
    assert {use.kind for use in evidence.numerics.precision} == {"normalisation", "softmax"}
    assert findings("PYR706", evidence) == []


def test_autocast_is_silent_where_torch_chooses_the_dtype(findings, watched, training):
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4))
    assert findings("PYR706", watched(training(model, amp="bfloat16"), steps=1)) == []


def test_a_loss_in_bfloat16_is_observed(findings, watched, training):
    class Low(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4).bfloat16()

        def forward(self, x):
            return self.layer(x.bfloat16())

    (finding,) = findings("PYR706", watched(training(Low()), steps=1))
    assert "a loss is computed in bfloat16" in finding.message
