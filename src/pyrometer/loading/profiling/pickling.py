"""What it takes to send a dataset to workers that are spawned."""

from __future__ import annotations

import pickle
import time
from typing import Any

import torch

from pyrometer.loading.profiling.record import PickledDataset
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.failure import first_line

LIMIT_BYTES = 2**30


def pickled_dataset(
    parts: Any, *, limit_s: Seconds = 0.5, limit_bytes: Bytes = LIMIT_BYTES
) -> PickledDataset:
    """Pickle to nowhere, and count; stops where time or size run out.

    Tensors are counted but not pickled: workers share their memory. (Sharing is left alone too: it would move the tensors.)

    >>> pickled_dataset([torch.zeros(10)]).tensor_bytes
    40
    """
    sink = _Sink(limit_s, limit_bytes)
    pickler = _Pickler(sink)
    start = time.perf_counter()
    failure: str | None = None
    complete = True
    try:
        pickler.dump(parts)
    except _LimitReached:
        complete = False
    except Exception as error:  # noqa: BLE001 - whatever the user's objects raise is the finding
        failure = f"{type(error).__name__}: {first_line(error)}"
    return PickledDataset(
        num_bytes=sink.num_bytes,
        time_s=time.perf_counter() - start,
        tensor_bytes=pickler.tensor_bytes,
        complete=complete,
        failure=failure,
    )


class _LimitReached(Exception):  # noqa: N818 - it is none
    """Enough was pickled."""


class _Sink:
    """A file that only counts."""

    def __init__(self, limit_s: Seconds, limit_bytes: Bytes) -> None:
        self.num_bytes = 0
        self._deadline = time.perf_counter() + limit_s
        self._limit_bytes = limit_bytes

    def write(self, data: Any) -> int:
        """Count."""
        size = memoryview(data).nbytes
        self.num_bytes += size
        if self.num_bytes > self._limit_bytes or time.perf_counter() > self._deadline:
            raise _LimitReached
        return size


class _Pickler(pickle.Pickler):
    """Counts tensors instead of pickling them."""

    def __init__(self, sink: _Sink) -> None:
        super().__init__(sink, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensor_bytes = 0

    def reducer_override(self, value: Any) -> Any:
        """What stands for a value in the pickle."""
        if isinstance(value, torch.Tensor):
            self.tensor_bytes += value.numel() * value.element_size()
            return int, (0,)
        return NotImplemented
