"""The state of all random generators of the process, in a form that `torch.load(weights_only=True)` reads."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def random_state(*, devices: bool = True) -> dict[str, Any]:
    """The states of Python, NumPy (the global one), torch, and with `devices` every CUDA device once CUDA is in use."""
    with_cuda = devices and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    _, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 - the global state is what is kept
    return {
        "python": random.getstate(),
        "numpy": (torch.from_numpy(keys), int(position), int(has_gauss), float(cached)),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if with_cuda else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Go on drawing from where a state was taken; a state of more CUDA devices than there are sets those that are there.

    >>> state = random_state()
    >>> drawn = random.random(), float(torch.rand(()))
    >>> set_random_state(state)
    >>> drawn == (random.random(), float(torch.rand(())))
    True
    """
    random.setstate(state["python"])
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy(), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    for device, cuda in zip(range(torch.cuda.device_count()), state["cuda"], strict=False):
        torch.cuda.set_rng_state(cuda, device)
