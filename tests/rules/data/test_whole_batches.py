"""PYR301 of a TensorDataset: whole batches instead of thousands of samples, with the same values in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.source.module import Module

HEAD = "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
DATA = "users, ratings = torch.arange(10), torch.arange(10) / 10\n"
NAMED = "data = TensorDataset(users, ratings)\n"
SPLIT = "data, checks = torch.utils.data.random_split(TensorDataset(users, ratings), [7, 3])\n"
LOADERS = [
    NAMED + "loader = DataLoader(data, batch_size=4, shuffle=True)\n",
    NAMED + "loader = DataLoader(data, 4, drop_last=True, num_workers=0)\n",
    "loader = DataLoader(TensorDataset(users, ratings), shuffle=True, batch_size=3, pin_memory=False)\n",
]


HELD = "checks = DataLoader(TensorDataset(users[:2], ratings[:2]), batch_size=2)\n"
LOOPS = """
def train(model, batches):
    for x, y in batches:
        loss = model(x, y)
        loss.backward()

@torch.no_grad()
def check(model, batches):
    for x, y in batches:
        print(model(x, y))

def run(model):
    train(model, loader)
    check(model, checks)
"""
SEVERAL = [
    NAMED + HELD + "loader = DataLoader(data, batch_size=4)\n" + LOOPS,
    NAMED + HELD + "loader: DataLoader = DataLoader(data, batch_size=4, shuffle=True)\n",
    SPLIT
    + "checks = DataLoader(checks, batch_size=4)\nloader = DataLoader(data, batch_size=4, shuffle=True)\n",
]
"""The loader of the steps beside one of another kind of use."""


def case_of(text: str, report: Any) -> Case:
    return Case(target="a", modules=[Module.parse("a.py", HEAD + DATA + text)], loading=report)


def batches(text: str) -> list[list[list[float]]]:
    names: dict[str, Any] = {}
    torch.manual_seed(2)
    exec(compile(text, "a.py", "exec"), names)
    torch.manual_seed(3)
    return [[part.tolist() for part in batch] for _ in range(2) for batch in names["loader"]]


@pytest.mark.parametrize("text", LOADERS + SEVERAL)
def test_the_rewrite_gives_the_same_batches(
    text: str, loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    (finding,) = findings("PYR301", case_of(text, loading(data_share=0.9)))
    replaces, rewrite = finding.advice.replaces, finding.advice.rewrite
    assert replaces is not None
    assert rewrite is not None
    assert "TensorDataset" in finding.advice.text
    assert finding.advice.lever is None
    whole = HEAD + DATA + text
    mended = whole.replace(replaces, rewrite)
    assert mended != whole
    assert batches(mended) == batches(whole)


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(data, batch_size=4, num_workers=2)",
        "DataLoader(data, batch_size=4, collate_fn=torch.stack)",
        "DataLoader(data)",
        "DataLoader(data, batch_size=None)",
        "DataLoader(data, batch_size=4, sampler=[1, 2, 3])",
        "DataLoader(data, batch_size=4, sampler=drawn)",
        "DataLoader(data, **settings)",
    ],
)
def test_other_loaders_are_advised_as_before(
    loader: str, loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    (finding,) = findings("PYR301", case_of(f"{NAMED}loader = {loader}\n", loading(data_share=0.9)))
    assert "TensorDataset" not in finding.advice.text


def test_where_nothing_singles_out_the_loader_of_the_steps_none_is_rewritten(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    text = f"{NAMED}{HELD}loader = DataLoader(data, batch_size=4)\n"
    (finding,) = findings("PYR301", case_of(text, loading(data_share=0.9)))
    assert "TensorDataset" not in finding.advice.text


def test_a_loader_that_a_function_makes_of_what_it_is_given_is_advised(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    text = """
def loader_of(part, shuffle):
    return DataLoader(part, batch_size=4, shuffle=shuffle)

loader, checks = loader_of(TensorDataset(users), True), loader_of(TensorDataset(ratings), shuffle=False)
"""
    (finding,) = findings("PYR301", case_of(text, loading(data_share=0.9)))
    assert "TensorDataset" in finding.advice.text
    assert finding.advice.rewrite is None


@pytest.mark.parametrize("given", ["shuffle=chosen", "generator=torch.Generator()"])
def test_what_the_text_does_not_tell_is_not_rewritten(
    given: str, loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    text = f"{NAMED}loader = DataLoader(data, batch_size=4, {given})\n"
    (finding,) = findings("PYR301", case_of(text, loading(data_share=0.9)))
    assert "TensorDataset" in finding.advice.text
    assert finding.advice.rewrite is None
