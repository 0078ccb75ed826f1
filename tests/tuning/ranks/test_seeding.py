"""A script that does not seed draws the same in each launch, and other values on each rank."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # starts processes

DRAWS = """
import random, sys
import numpy as np
import torch
from pyrometer.tuning.ranks.rank import seed_from_outside

seed_from_outside(int(sys.argv[1]))
print(
    random.random(), random.Random().random(), np.random.rand(), np.random.default_rng().random(),
    np.random.RandomState().rand(), torch.rand(()).item(), [np.random.default_rng().random() for _ in range(2)],
)
"""


def draws(rank: int) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", DRAWS, str(rank)], capture_output=True, text=True, check=True, timeout=300
    )
    return ran.stdout


def test_launches_draw_alike_and_ranks_do_not() -> None:
    first, again, other = draws(0), draws(0), draws(1)
    assert first == again
    assert not set(first.split()) & set(other.split())
