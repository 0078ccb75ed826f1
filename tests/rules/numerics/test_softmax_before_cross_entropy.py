from __future__ import annotations

import math

import pytest
import torch
from torch import nn

FIRES = {
    "function": "import torch.nn.functional as F\nloss = F.cross_entropy(F.softmax(x, -1), y)  # <-",
    "through a name": """
        import torch.nn.functional as F
        p = model(x).softmax(dim=-1)
        loss = F.cross_entropy(p, y)  # <-
    """,
    "a module that ends in one": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(4, 3)

            def forward(self, x):
                return torch.softmax(self.head(x), dim=-1)

        net, criterion = Net(), nn.CrossEntropyLoss()
        for x, y in loader:
            loss = criterion(net(x), y)  # <-
    """,
    "module": """
        from torch import nn
        import torch
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            loss = criterion(torch.softmax(model(x), 1), y)  # <-
    """,
}

SILENT = {
    "scores": "import torch.nn.functional as F\nloss = F.cross_entropy(model(x), y)",
    "log softmax": "import torch.nn.functional as F\nloss = F.nll_loss(F.log_softmax(x, -1), y)",
    "soft targets": "import torch.nn.functional as F\nloss = F.cross_entropy(x, F.softmax(teacher, -1))",
    "another loss": "import torch\nfrom torch import nn\nc = nn.MSELoss()\nloss = c(torch.softmax(x, 1), y)",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR711", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR711", text) == []


def test_probabilities_bound_the_loss_from_below_and_scores_do_not():
    scores, target = torch.eye(10) * 100, torch.arange(10)
    of_probabilities = float(nn.functional.cross_entropy(scores.softmax(-1), target))
    assert of_probabilities == pytest.approx(math.log(1 + 9 / math.e), abs=1e-4)
    assert float(nn.functional.cross_entropy(scores, target)) < 1e-4
