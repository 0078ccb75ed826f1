"""What every test must leave as it found it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The same examples everywhere, without limits of time, so that what passes on one machine passes on another;
# HYPOTHESIS_PROFILE=default looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def process_state() -> dict[str, Any]:
    """Everything global that a careless library would change; torch only once something has imported it."""
    # The compiler imports setuptools, which adds its own folder to sys.path for good.
    path = [entry for entry in sys.path if not entry.endswith("setuptools/_vendor")]
    state: dict[str, Any] = {"cwd": Path.cwd(), "sys.path": path, "sys.argv": list(sys.argv)}
    if "torch" in sys.modules:
        state |= torch_state()
    return state


def torch_state() -> dict[str, Any]:
    import torch
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.utils.data import DataLoader

    return {
        "threads": torch.get_num_threads(),
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "autocast": torch.is_autocast_enabled("cpu"),
        "global hooks": {
            name: dict(value) for name, value in vars(module).items() if is_hook_table(name, value)
        },
        "optimizer hooks": {
            name: dict(value) for name, value in vars(optimizer).items() if is_hook_table(name, value)
        },
        "patched": (torch.nn.Module.__call__, torch.Tensor.backward, DataLoader.__iter__),
    }


def is_hook_table(name: str, value: Any) -> bool:
    return name.startswith("_global_") and isinstance(value, dict)


@pytest.fixture(autouse=True)
def unchanged_process() -> Iterator[None]:
    before = process_state()
    yield
    after = process_state()
    assert {name: after[name] for name in before} == before
