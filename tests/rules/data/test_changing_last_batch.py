"""PYR311: a smaller last batch in a compiled program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

HEAD = """
import torch
from torch.utils.data import DataLoader

def train(model: torch.nn.Module, loader):
    for x in loader:
        model(x).sum().backward()

"""
COMPILED = "fast = torch.compile(net)\n"

FIRES = {
    "not dropped": "loader = DataLoader(data, batch_size=32, shuffle=True)  # <-\n",
    "kept on purpose": "loader = DataLoader(data, 32, True, drop_last=False)  # <-\n",
    "a size from elsewhere": "loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)  # <-\n",
}

SILENT = {
    "dropped": "loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)\n",
    "dropped perhaps": "loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=is_train)\n",
    "evaluation": "loader = DataLoader(data, batch_size=32)\n",
    "single samples": "loader = DataLoader(data, shuffle=True)\n",
    "batches from elsewhere": "loader = DataLoader(data, batch_sampler=sampler)\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_loader(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR311", HEAD + COMPILED + text) == marked(HEAD + COMPILED + text)
    assert lines("PYR311", HEAD + text) == [], "nothing is compiled"
    dynamic = COMPILED.replace("net", "net, dynamic=True")
    assert lines("PYR311", HEAD + dynamic + text) == [], "sizes may change"


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR311", HEAD + COMPILED + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR311")


@pytest.mark.parametrize("text", list(FIRES.values())[:2])
def test_the_fix_drops_it(text: str, fixed: Callable[[str, str], str]) -> None:
    assert "drop_last=True)" in fixed("PYR311", HEAD + COMPILED + text)


@pytest.mark.parametrize(("drop_last", "graphs"), [(False, 2), (True, 1)])
def test_a_smaller_last_batch_is_compiled_once_more(drop_last: bool, graphs: int) -> None:
    torch._dynamo.reset()
    compiled = []

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        compiled.append(graph)
        return graph

    model = torch.compile(torch.nn.Linear(4, 1), backend=backend)
    data = torch.utils.data.TensorDataset(torch.randn(10, 4))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, drop_last=drop_last)
    for _ in range(2):
        for (x,) in loader:
            model(x)
    torch._dynamo.reset()
    assert len(compiled) == graphs
