"""PYR304: batches copied from pageable memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = """
import torch
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
LOOP = """
for x, y in loader:
    x, y = x.to(device), y.to(device)
"""

FIRES = {
    "to a device": "loader = DataLoader(data, batch_size=8)  # <-" + LOOP,
    "switched off": "loader = DataLoader(data, batch_size=8, pin_memory=False)  # <-" + LOOP,
    "by cuda": """
loader = DataLoader(data, batch_size=8)  # <-
for i, batch in enumerate(loader):
    x = batch["x"].cuda(non_blocking=True)
""",
}

SILENT = {
    "pinned": "loader = DataLoader(data, batch_size=8, pin_memory=True)" + LOOP,
    "pinned where there is a device": "loader = DataLoader(data, pin_memory=torch.cuda.is_available())"
    + LOOP,
    "nothing is moved": """
loader = DataLoader(data, batch_size=8)
for x, y in loader:
    model(x.to(torch.float32))
""",
    "another is moved": """
loader = DataLoader(data, batch_size=8)
for x, y in loader:
    model.to(device)
""",
    "settings from elsewhere": "loader = DataLoader(data, **settings)" + LOOP,
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_loader(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR304", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR304", HEAD + text) == []


def test_is_silent_without_a_device(lines: Callable[..., list[int]]) -> None:
    text = 'import torch\nfrom torch.utils.data import DataLoader\ndevice = torch.device("cpu")\n'
    assert lines("PYR304", text + FIRES["to a device"]) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR304")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("DataLoader(data)", "DataLoader(data, pin_memory=True)"),
        ("DataLoader(data, 8,)", "DataLoader(data, 8, pin_memory=True)"),
        ("DataLoader(data, batch_size=(8))", "DataLoader(data, batch_size=(8), pin_memory=True)"),
        (
            "DataLoader(data, pin_memory=False, batch_size=8)",
            "DataLoader(data, pin_memory=True, batch_size=8)",
        ),
        (
            "DataLoader(\n    data,\n    batch_size=8,\n)",
            "DataLoader(\n    data,\n    batch_size=8,\n    pin_memory=True,\n)",
        ),
        (
            "DataLoader(\n    données,\n    batch_size=8\n)",
            "DataLoader(\n    données,\n    batch_size=8,\n    pin_memory=True,\n)",
        ),
    ],
)
def test_the_fix_adds_the_argument(call: str, expected: str, fixed: Callable[[str, str], str]) -> None:
    assert fixed("PYR304", HEAD + f"loader = {call}" + LOOP) == HEAD + f"loader = {expected}" + LOOP


def test_a_comment_after_the_last_argument_is_left_to_a_person(matches: Callable[..., Any]) -> None:
    (match,) = matches("PYR304", HEAD + "loader = DataLoader(\n    data,  # all of it\n)" + LOOP)
    assert match.fix is None


@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_pinning_changes_no_value() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(10.0))
    batches = [
        list(torch.utils.data.DataLoader(data, batch_size=3, pin_memory=pinned)) for pinned in (False, True)
    ]
    for (plain,), (pinned,) in zip(*batches, strict=True):
        assert torch.equal(plain, pinned)


def test_the_loaders_advice_is_carried(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    (finding,) = findings(
        "PYR304", Case(target="a", loading=loading(advice=[advice("pin-memory", lever="pin_memory")]))
    )
    assert (finding.advice.lever, finding.resource) == ("pin_memory", "copy:H2D")
