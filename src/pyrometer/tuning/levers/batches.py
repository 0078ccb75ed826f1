"""Batches behind what levers lay around them: parts, and copies ahead."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.changes.micro_batches import Parts


class Ahead:
    """Batches that are copied to a device ahead of their use; every iteration starts them anew.

    Attributes:
        whole: the batches as they come.
    """

    def __init__(self, batches: Iterable[Any], device: torch.device, *, pin: bool) -> None:
        self.whole = batches
        self._device, self._pin = device, pin

    def over(self, batches: Iterable[Any]) -> Ahead:
        """The same of other batches."""
        return Ahead(batches, self._device, pin=self._pin)

    def __iter__(self) -> Iterator[Any]:
        with (
            contextlib.closing(BatchStream(self.whole)) as stream,
            DevicePrefetcher(_endless(stream), self._device, pin=self._pin) as prefetcher,
        ):
            yield from prefetcher


def _endless(stream: BatchStream) -> Iterator[Any]:
    while True:
        yield stream.next()


def ahead(batches: Iterable[Any], device: torch.device, *, pin: bool) -> Parts | Ahead:
    """Batches that are copied ahead: whole ones, since the weight of a part holds until the next is asked for."""
    if isinstance(batches, Parts):
        return batches.over(ahead(batches.whole, device, pin=pin))
    return Ahead(batches, device, pin=pin)


def are_ahead(batches: Iterable[Any]) -> bool:
    """Whether batches are copied ahead."""
    return isinstance(batches, Ahead) or (isinstance(batches, Parts) and are_ahead(batches.whole))


def loader_of(batches: Any) -> DataLoader[Any] | None:
    """The DataLoader that batches come from."""
    if isinstance(batches, DataLoader):
        return batches
    return loader_of(batches.whole) if isinstance(batches, (Parts, Ahead)) else None


def over_loader(batches: Any, change: Callable[[DataLoader[Any]], DataLoader[Any]]) -> Iterable[Any]:
    """The same batches from another DataLoader."""
    if isinstance(batches, DataLoader):
        return change(batches)
    assert isinstance(batches, (Parts, Ahead))
    return batches.over(over_loader(batches.whole, change))
