from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pyrometer.loading.batch_bytes import batch_bytes


@dataclass
class Sample:
    image: torch.Tensor
    name: str


big = torch.zeros(1000)


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (torch.zeros(2, 3), 24),
        ((torch.zeros(2), [np.zeros(3, dtype=np.int16), "abc"]), 8 + 6 + 3),
        ({"a": torch.zeros(1), "b": {"c": b"12"}}, 6),
        (Sample(torch.zeros(4), "xy"), 18),
        (SimpleNamespace(x=torch.zeros(4), y=None), 16),
        ([big[:1], big[1:2]], 4000),
        (torch.eye(3).to_sparse(), 2 * 3 * 8 + 3 * 4),
        (7, 0),
        (None, 0),
    ],
)
def test_bytes_are_those_of_everything_inside_once(batch, size):
    assert batch_bytes(batch) == size


def test_what_contains_itself_ends():
    loop = [torch.zeros(1)]
    loop.append(loop)
    assert batch_bytes(loop) == 4
