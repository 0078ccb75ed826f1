"""The streams of a device ask torch for the right things; with a GPU, copies are right under load."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import torch

from pyrometer.tuning.prefetch import streams as streams_module
from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher
from pyrometer.tuning.prefetch.streams import Streams

ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class FakeModule:
    """What `torch.cuda` offers of streams, writing down what was asked for."""

    def __init__(self):
        self.log = []
        self.now = "default"

    def Stream(self, device):  # noqa: N802 - torch's name
        self.log.append(("Stream", device))
        return SimpleNamespace(record_event=self.record_event)

    def record_event(self):
        self.log.append(("record", self.now))
        return SimpleNamespace(query=lambda: True, synchronize=lambda: self.log.append("synchronize"))

    @contextlib.contextmanager
    def stream(self, stream):
        self.now = "copies"
        yield
        self.now = "default"

    def current_stream(self, device):
        return SimpleNamespace(wait_event=lambda event: self.log.append(("wait", self.now)))


class Elsewhere(torch.Tensor):
    """A tensor that says that it lies on another device."""

    device = torch.device("cpu", 1)

    def to(self, device, non_blocking=False):
        self.log.append(("to", str(device), non_blocking))
        subclass = self.as_subclass(Here)
        subclass.log = self.log
        return subclass


class Here(torch.Tensor):
    """What it was moved to."""

    def record_stream(self, stream):
        self.log.append("record_stream")


def test_a_batch_is_copied_awaited_and_recorded_in_this_order(monkeypatch):
    fake = FakeModule()
    monkeypatch.setattr(streams_module.torch, "cpu", fake)
    tensor = torch.ones(2).as_subclass(Elsewhere)
    tensor.log = fake.log
    device = torch.device("cpu")
    (given,) = list(DevicePrefetcher([tensor], device, streams=Streams(device)))
    assert isinstance(given, Here)
    assert fake.log == [
        ("Stream", device),
        ("to", "cpu", True),
        ("record", "copies"),
        ("wait", "default"),
        "record_stream",
        "synchronize",
    ]


@ON_GPU
@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("host", ["pageable", "pinned"])
def test_on_a_gpu_batches_are_right_while_kernels_lag_behind(pin, host):
    batches = [torch.full((256, 1024), float(number)) for number in range(40)]
    if host == "pinned":
        batches = [batch.pin_memory() for batch in batches]
    busy = torch.randn(2048, 2048, device="cuda")
    sums = []
    for batch in DevicePrefetcher((batch.clone() if pin else batch for batch in batches), "cuda", pin=pin):
        for _ in range(5):
            busy = busy @ busy * 1e-4
        sums.append(batch.mean())
        del batch
    torch.cuda.synchronize()
    assert [value.item() for value in sums] == [float(number) for number in range(40)]
