from __future__ import annotations

import contextlib

import pytest
import torch

from pyrometer.workload.surroundings import TorchSettings, preserved_surroundings

CHANGES = {
    "threads": lambda: torch.set_num_threads(3),
    "grad_enabled": lambda: torch.set_grad_enabled(False),
    "default_dtype": lambda: torch.set_default_dtype(torch.float64),
    "default_device": lambda: torch.set_default_device("meta"),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "cudnn_benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "cudnn_deterministic": lambda: setattr(torch.backends.cudnn, "deterministic", True),
    "matmul_precision": lambda: torch.set_float32_matmul_precision("medium"),
    "backend_precisions": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_setting_is_seen_and_put_back(name):
    before = TorchSettings.current()
    with preserved_surroundings():
        CHANGES[name]()
        changed = TorchSettings.current()
        assert getattr(changed, name) != getattr(before, name)
    assert TorchSettings.current() == before
    with preserved_surroundings():
        changed.apply()
        assert TorchSettings.current() == changed
    assert TorchSettings.current() == before


def test_settings_that_the_user_changes_between_two_sessions_are_kept():
    with preserved_surroundings():
        torch.set_num_threads(2)
        with contextlib.suppress(ZeroDivisionError), preserved_surroundings():
            1 / 0  # noqa: B018
    for threads in (2, 3, 1):
        torch.set_num_threads(threads)
        with preserved_surroundings() as surroundings:
            assert surroundings.settings.threads == threads
            torch.set_num_threads(threads + 1)
        assert torch.get_num_threads() == threads
