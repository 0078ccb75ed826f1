"""What a single worker shows, that is started only to be looked at."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from pyrometer.loading.starting import try_worker


class InPython(Dataset[torch.Tensor]):
    """Samples whose making holds the interpreter's lock all the time."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(sum(value**power for power in range(8))) for value in range(512)])


def test_a_busy_worker_does_not_make_the_handover_look_dear() -> None:
    loader = DataLoader(InPython(), batch_size=16)
    seen = [try_worker(loader) for _ in range(3)]
    making_s = sum(_making_s() for _ in range(3)) / 3
    assert 0 < min(start.receive_s for start in seen) < making_s / 4


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_of_a_short_epoch_as_much_is_told_as_it_shows(batches: int) -> None:
    seen = try_worker(DataLoader(list(range(batches))))
    assert seen.refused is None
    assert seen.of(2) > seen.of(1) > 0
    assert seen.receive_s < seen.of(1)


def _making_s() -> float:
    begin_s = time.perf_counter()
    next(iter(DataLoader(InPython(), batch_size=16)))
    return time.perf_counter() - begin_s
