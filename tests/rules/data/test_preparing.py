"""The lines that make samples and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.host.profile import HostLine, HostProfile
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.source.module import Module

TEXT = """
import numpy as np
from torch.utils.data import DataLoader, Dataset

def cut(spectrum, length):
    whole = np.pad(spectrum, length)
    return whole[:length]

class Spectra(Dataset):
    def __getitem__(self, index):
        return cut(self.spectra[index], 100)

def join(samples):
    return np.stack(samples)

def network(x):
    return x @ x

loader = DataLoader(Spectra(), collate_fn=join)
"""


def case(loading: Callable[..., Any], **own: float) -> Case:
    """A step of a second in which lines take these times."""
    lines = [
        HostLine(where=Place(file="train.py", line=int(name[1:]), function="f"), own_s=s, total_s=s)
        for name, s in own.items()
    ]
    profile = HostProfile(steps=10, samples=400, interval_s=0.001, step_s=1.0, lines=lines)
    return Case(
        target="a",
        host=profile,
        modules=[Module.parse("train.py", TEXT)],
        loading=loading(data_share=0.8),
    )


@pytest.mark.parametrize(("own", "line"), [({"_6": 0.5, "_11": 0.1}, 6), ({"_14": 0.4, "_6": 0.2}, 14)])
def test_waiting_is_told_at_the_dearest_line_of_samples_and_batches(
    loading: Callable[..., Any], only: Callable[..., Finding], own: dict[str, float], line: int
) -> None:
    finding = only("PYR301", case(loading, **own, _17=0.9))
    assert (finding.where.line, finding.scope) == (line, "mechanism")
    assert finding.advice.gain is not None
    assert finding.advice.gain.ratio_high == pytest.approx(1 - 0.7 * max(own.values()))


def test_with_workers_the_loader_is_the_place(
    loading: Callable[..., Any], only: Callable[..., Finding]
) -> None:
    finding = only("PYR301", case(loading, _6=0.01, _17=0.9))
    assert (finding.where.line, finding.scope) == (19, "symptom")
