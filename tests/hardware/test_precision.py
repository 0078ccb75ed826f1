"""TF32 on and off, whichever way the user had set it; the switches exist without a GPU too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyrometer.hardware.precision import float32_precision
from pyrometer.hardware.torch_flags import read_settings


@pytest.mark.parametrize(("tf32", "word"), [(True, "tf32"), (False, "ieee")])
def test_both_kinds_of_arithmetic_are_switched_and_put_back(tf32, word):
    before = read_settings(os.environ)
    with float32_precision(tf32=tf32):
        inside = read_settings(os.environ)
    assert read_settings(os.environ) == before
    assert inside == {**before, "cuda.matmul.fp32_precision": word, "cudnn.conv.fp32_precision": word}


def test_they_are_put_back_after_a_failure():
    before = read_settings(os.environ)
    with pytest.raises(RuntimeError, match="out of memory"), float32_precision(tf32=True):
        raise RuntimeError("out of memory")
    assert read_settings(os.environ) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "users",
    [
        "torch.set_float32_matmul_precision('high')",
        pytest.param("torch.backends.cuda.matmul.fp32_precision = 'tf32'", marks=pytest.mark.exhaustive),
    ],
)
def test_a_users_own_switch_stays_readable_and_in_force(users):
    """In a process of its own, because torch remembers for good which kind of switch was used."""
    code = f"""
import torch
from pyrometer.hardware.precision import float32_precision
def state():
    matmul = torch.backends.cuda.matmul
    try:
        overall = torch.get_float32_matmul_precision()
    except RuntimeError:
        overall = "set per backend"
    return overall, getattr(matmul, "fp32_precision", None), matmul.allow_tf32 if "fp32" not in {users!r} else None
{users}
before = state()
for tf32 in (True, False):
    with float32_precision(tf32=tf32):
        torch.ones(4, 4) @ torch.ones(4, 4)
    assert state() == before, (before, state())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
