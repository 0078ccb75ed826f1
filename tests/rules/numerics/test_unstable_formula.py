from __future__ import annotations

import textwrap

import pytest
import torch
from torch.nn import functional

from pyrometer.source.edit import apply_edits

FIRES = {
    "log softmax": "import torch\ny = torch.log(torch.softmax(x, dim=-1))  # <-",
    "methods": "import torch\ny = x.softmax(-1).log()  # <-",
    "through a name": "import torch.nn.functional as F\np = F.softmax(x, 1)\nq = p.log()  # <-",
    "log sigmoid": "import torch\ny = torch.log(torch.sigmoid(x))  # <-",
    "logsumexp": "import torch\ny = torch.log(torch.exp(x).sum(-1))  # <-\nz = torch.sum(x.exp(), dim=1).log()  # <-",
    "softplus": "import torch\ny = torch.log(1 + torch.exp(x))  # <-",
    "softmax by hand": """
        import torch
        def weights(scores):
            e = torch.exp(scores)
            return e / e.sum(-1, keepdim=True)  # <-
    """,
    "softmax in one line": "import torch\ny = torch.exp(x) / torch.exp(x).sum()  # <-",
    "standardised": """
        import torch
        def standardise(x: torch.Tensor):
            mean = x.mean(-1, keepdim=True)
            return (x - mean) / x.std(-1, keepdim=True)  # <-
    """,
    "binary cross entropy": """
        import torch
        import torch.nn.functional as F
        loss = F.binary_cross_entropy(torch.sigmoid(scores), y)  # <-
    """,
    "root of squares": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4)
                self.b = nn.Linear(4, 4)
            def forward(self, x):
                return torch.sqrt(((self.a(x) - self.b(x)) ** 2).sum(-1))  # <-
    """,
}

SILENT = {
    "log softmax itself": "import torch\ny = torch.log_softmax(x, -1)",
    "with eps": "import torch\ny = torch.log(torch.softmax(x, -1) + 1e-9)",
    "maximum taken off": """
        import torch
        e = torch.exp(x - x.max(-1, keepdim=True).values)
        y = e / e.sum(-1, keepdim=True)
    """,
    "decay": "import torch\nw = torch.exp(-distance)\nw = w / w.sum()",
    "standardised with eps": """
        import torch
        def standardise(x: torch.Tensor):
            return (x - x.mean()) / (x.std() + 1e-6)
    """,
    "standardised by constants": """
        import torch
        def standardise(x: torch.Tensor, mean, data):
            return (x - mean) / data.std()
    """,
    "standardised, of what is not known": "import torch\ny = (x - x.mean()) / x.std()",
    "numpy": "import numpy as np\nimport torch\ne = np.exp(x)\ny = e / e.sum()\nz = np.log(np.exp(x).sum())",
    "another sum": "import torch\ne = torch.exp(x)\ny = e / total.sum()",
    "root of a mean with eps": "import torch\ny = torch.sqrt((a - b).pow(2).mean() + 1e-8)",
    "root without gradient": """
        import torch
        @torch.no_grad()
        def distance(model, x, y):
            return torch.sqrt(((model(x) - y) ** 2).sum(-1))
    """,
    "root of a variance": """
        import torch
        def forward(self, x):
            return torch.sqrt(self.running_var)
    """,
    "log of probabilities from elsewhere": "import torch\ny = torch.log(probabilities)",
    "changed in between": "import torch\np = torch.softmax(x, -1)\np.clamp_(min=1e-9)\ny = torch.log(p)",
    "log probabilities": "import torch\np = torch.exp(log_probs)\np = p / p.sum()",
    "bell curve": "import torch\ne = torch.exp(-0.5 * (x / sigma).pow(2))\ny = e / e.sum()",
    "bell curve, other": "import torch\ne = torch.exp(-x.pow(2.0) / (2 * sigma.pow(2.0)))\ny = e / e.sum(-1, keepdim=True)",
    "bell curve, powers": "import torch\ne = torch.exp(-torch.pow(x / sigma, 2) / 2)\ny = e / e.sum()",
    "with logits": "import torch.nn.functional as F\nloss = F.binary_cross_entropy_with_logits(x, y)",
    "maximum off in place": "import torch\nx -= x.max(-1, keepdim=True).values\ny = x - torch.log(torch.exp(x).sum(-1))",
    "not torch": "e = exp(x)\ny = e / e.sum()",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR710", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR710", text) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y = torch.log(torch.softmax(x, dim=-1))", "y = torch.log_softmax(x, dim=-1)"),
        ("y = torch.log(functional.softmax(x, -1))", "y = functional.log_softmax(x, -1)"),
        ("y = x.softmax(-1).log()", "y = x.log_softmax(-1)"),
        ("y = torch.log(torch.sigmoid(x))", "y = functional.logsigmoid(x)"),
        (
            "y = functional.binary_cross_entropy(torch.sigmoid(x), t)",
            "y = functional.binary_cross_entropy_with_logits(x, t)",
        ),
    ],
)
def test_the_fix_computes_the_same_and_stays_in_range(matches, line, expected):
    text = f"import torch\nfrom torch.nn import functional\n{line}\n"
    (match,) = matches("PYR710", text)
    assert match.fix.fix_class == "tolerance"
    fixed = apply_edits(text, match.fix.edits)
    assert fixed.splitlines()[-1] == expected
    results = {}
    for name, code in {"before": line, "after": expected}.items():
        for scale in (1.0, 200.0):
            torch.manual_seed(0)
            names = {"torch": torch, "functional": functional}
            names |= {"x": torch.randn(4, 6) * scale, "t": torch.full((4, 6), 0.5)}
            exec(textwrap.dedent(code), names)
            results[name, scale] = names["y"]
    assert torch.allclose(results["before", 1.0], results["after", 1.0], atol=1e-6)
    assert results["after", 200.0].isfinite().all()


def test_the_advice_for_roots_has_a_gradient_at_zero():
    for formula, finite in ((lambda d: torch.sqrt((d**2).sum(-1)), False), (torch.linalg.vector_norm, True)):
        d = torch.zeros(3, requires_grad=True)
        formula(d).backward()
        assert bool(d.grad.isfinite().all()) is finite


def test_the_advice_for_sums_stays_in_range():
    x = torch.tensor([100.0, 90.0])
    assert torch.log(torch.exp(x).sum()).isinf()
    assert torch.logsumexp(x, 0).isfinite()
    assert (torch.exp(x) / torch.exp(x).sum()).isnan().any()
    assert torch.softmax(x, 0).isfinite().all()
    assert torch.log(1 + torch.exp(x)).isinf().any()
    assert functional.softplus(x).isfinite().all()


def test_the_advice_for_deviations_holds_where_all_values_are_equal():
    x = torch.ones(4)
    assert ((x - x.mean()) / x.std()).isnan().all()
    assert ((x - x.mean()) / (x.std() + 1e-6)).isfinite().all()
