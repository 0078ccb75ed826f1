"""A script that does not seed draws the same in each launch, and other values on each rank."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # starts processes

DRAWS = """
import os, random
import numpy as np
import torch
from pyrometer.tuning.ranks.rank import seed_from_outside

for rank in (0, 0, 1):
    if os.fork():
        os.wait()
        continue
    for seed in (random.seed, np.random.seed, torch.seed):  # as different as processes of their own
        seed()
    seed_from_outside(rank)
    print(
        random.random(), random.Random().random(), np.random.rand(), np.random.default_rng().random(),
        np.random.RandomState().rand(), torch.rand(()).item(), [np.random.default_rng().random() for _ in range(2)],
        flush=True,
    )
    os._exit(0)
"""


def test_launches_draw_alike_and_ranks_do_not() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DRAWS], capture_output=True, text=True, check=True, timeout=300
    )
    first, again, other = ran.stdout.splitlines()
    assert first == again
    assert not set(first.split()) & set(other.split())
