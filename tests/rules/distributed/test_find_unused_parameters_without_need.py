from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pyrometer as pm

FIRES = {
    "both": """
        from torch.nn.parallel import DistributedDataParallel as DDP
        model = DDP(model, find_unused_parameters=True, static_graph=True)  # <-
    """,
    "by its module": """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(  # <-
            model, static_graph=True, find_unused_parameters=True)
    """,
}

SILENT = {
    "alone": "from torch.nn.parallel import DistributedDataParallel as D\nm = D(m, find_unused_parameters=True)",
    "a setting": "from torch.nn.parallel import DistributedDataParallel as D\nm = D(m, find_unused_parameters=a.find, static_graph=True)",
    "off": "from torch.nn.parallel import DistributedDataParallel as D\nm = D(m, find_unused_parameters=False, static_graph=True)",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, text):
    first = next(
        number
        for number, line in enumerate(__import__("textwrap").dedent(text).splitlines(), 1)
        if "<-" in line
    )
    assert lines("PYR604", text) == [first]


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR604", text) == []


class Two(nn.Module):
    """A second branch that is used, or not, or now and then."""

    def __init__(self, use) -> None:
        super().__init__()
        self.one, self.two, self.use = nn.Linear(8, 4), nn.Linear(8, 4), use

    def forward(self, x):
        return self.one(x) + (self.two(x) if next(self.use) else 0.0)


def observed(observe, use, **settings):
    model = DistributedDataParallel(Two(iter(use)), **settings)
    batches = [(torch.randn(4, 8), torch.randint(0, 4, (4,)))]
    work = pm.Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), batches)
    return observe(work, "program", "numerics", steps=4)


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore:find_unused_parameters")
def test_the_setting_is_needless_where_all_parameters_are_used(findings, observe):
    (finding,) = findings("PYR604", observed(observe, [True] * 20, find_unused_parameters=True))
    assert "all were used in each of 4 steps" in finding.message
    assert findings("PYR604", observed(observe, [True] * 20)) == []


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("use", [[False] * 20, [True, False] * 10], ids=["never", "now and then"])
def test_it_is_needed_where_some_are_not(findings, observe, use):
    assert findings("PYR604", observed(observe, use, find_unused_parameters=True)) == []
