"""Nothing of ours stands among what a check tells of the user's program: no file, no function, no thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyrometer
from pyrometer.evidence.observe import observe
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.report.attaching import draw
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target

pytestmark = pytest.mark.slow

PROGRAM = """
import torch
from torch import nn
import pyrometer as pm

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.kept = []

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        self.kept.append(x.mean().item())
        return x

def work():
    net = Net()
    data = torch.utils.data.TensorDataset(torch.randn(256, 64), torch.randn(256, 64))
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    return pm.Training(net, nn.functional.mse_loss, torch.optim.SGD(net.parameters(), 0.01), loader)
"""

OURS = str(Path(pyrometer.__file__).parent)


def strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a document, with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, str(key)
            yield from strings(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner, f"{path}[]")
    elif isinstance(value, str):
        yield path, value


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    file = tmp_path_factory.mktemp("program") / "program_under_test.py"
    file.write_text(PROGRAM)
    target = parse_target(f"{file}:work")
    before = set(threading.enumerate())
    observed = observe(load_workload(target), target.text, ObserveOptions(budget_s=2.0))
    assert set(threading.enumerate()) <= before
    assert observed.evidence.measurement is not None
    assert observed.evidence.measurement.failure is None
    return observed


def test_the_program_itself_is_told(seen: Observed) -> None:
    told = json.dumps(pyrometer.record.to_dict(seen.evidence))
    assert "program_under_test.py" in told
    assert seen.evidence.host is not None
    assert seen.evidence.memory is not None
    assert seen.evidence.trace is not None


def test_no_file_of_ours_is_in_the_evidence(seen: Observed) -> None:
    document = pyrometer.record.to_dict(seen.evidence)
    document.pop("environment", None)  # where the packages of this machine lie
    assert [(place, text) for place, text in strings(document) if OURS in text or "pyrometer/" in text] == []


def test_no_frame_of_ours_is_drawn(seen: Observed) -> None:
    assert seen.trace is not None
    drawn = json.dumps(pyrometer.record.to_dict(draw(seen.trace.ranks, seen.peaks)), default=str)
    assert OURS not in drawn
