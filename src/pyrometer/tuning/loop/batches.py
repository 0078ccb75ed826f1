"""Batches with a place in the data that can be saved, and found again to the bit.

A loader with `state_dict()` and `load_state_dict()` (`torchdata`'s `StatefulDataLoader`) says itself where it is. Any other is
started anew in the state that random generators had at the start of the epoch, and batches are passed over: without being
made where samples are loaded in this process, since only then no random number is missed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from pyrometer.errors import InputError
from pyrometer.loading.loader import epoch_batches, settings_of, with_settings
from pyrometer.loading.settings import LoaderSettings
from pyrometer.tuning.loop.random_state import random_state, set_random_state
from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher, streams_of
from pyrometer.tuning.prefetch.streams import Streams

END: Any = object()
"""In place of a batch: the epoch has ended."""

_NOTHING: Any = object()


class PositionedBatches:
    """The batches of one epoch after another, on the device.

    Where batches are copied ahead of their use, the loader draws from random generators of its own, so that it does not matter how
    far ahead it is.

    Attributes:
        loader: the user's, or the same with other settings.
        epoch: the present one, from 0.
        batch: how many batches of it were taken.
        fetch_ns: time spent in the loader so far.
    """

    def __init__(self, loader: Iterable[Any], device: torch.device, streams: Streams | None = None) -> None:
        self.loader: Any = loader
        self.epoch = 0
        self.batch = 0
        self.fetch_ns = 0
        self._device = device
        self._streams = streams or streams_of(device)
        self._prefetcher: DevicePrefetcher | None = None
        self._ahead: Iterator[Any] | None = None
        self._source: Iterator[Any] = iter(())
        self._peeked: Any = _NOTHING
        self._at_start: dict[str, Any] = {}
        # What a checkpoint needs of the moment before each batch that was fetched and not yet taken.
        self._moments: deque[dict[str, Any]] = deque()
        self._own_random: dict[str, Any] | None = None

    def next(self, *, within: bool = False) -> Any:
        """The next batch on the device, or `END`, after which the next epoch begins.

        Args:
            within: a step, which ends early where a loader has fewer batches than its length says: the epoch ends with the next call.
        """
        ahead = self._ahead or self._start()
        if self._peeked is not _NOTHING:
            batch, self._peeked = self._peeked, _NOTHING
        else:
            batch = next(ahead, END)
        if batch is END:
            if within:
                self._peeked = END
            else:
                self._end()
            return END
        self.batch += 1
        if self._moments:
            self._moments.popleft()
        return batch

    def is_last(self) -> bool:
        """Whether the epoch has no further batch; a loader that does not know its length is asked for the next one."""
        if self._peeked is _NOTHING:
            length = _length(self.loader)
            if length is not None and self.batch <= length:
                return self.batch == length
            self._peeked = END if self._ahead is None else next(self._ahead, END)
        return self._peeked is END

    def close(self) -> None:
        """Let go of the iterator, so that its workers and threads end; the place in the data is kept, but not to go on from."""
        iterator, self._source, self._ahead, self._peeked = self._source, iter(()), None, _NOTHING
        self._moments.clear()
        if self._prefetcher is not None:
            self._prefetcher.close()
        if isinstance(self.loader, DataLoader):
            self.loader._iterator = None  # noqa: SLF001 - the reference that keeps persistent workers alive
            getattr(iterator, "_shutdown_workers", lambda: None)()

    @property
    def settings(self) -> LoaderSettings | None:
        """Of a loader whose workers may be changed: a `DataLoader` over indices that does not keep its own state."""
        fixed = (
            not isinstance(self.loader, DataLoader) or _is_stateful(self.loader) or not _by_index(self.loader)
        )
        return None if fixed else settings_of(self.loader)

    def use(self, settings: LoaderSettings) -> None:
        """Load with other settings; between two epochs only."""
        if settings != self.settings:
            self.close()
            self.loader = with_settings(self.loader, settings)

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch comes from."""
        begun = self._ahead is not None
        moment = self._moments[0] if self._moments else self._moment()
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "begun": begun,
            "start": self._at_start if begun else {"parts": _states(self.loader)},
            "random": moment["random"],
            "loader": moment["loader"] if begun else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a place that was saved. Draws random numbers: the state of the generators is to be set afterwards.

        Raises:
            InputError: the loader has fewer batches than were taken.
        """
        self.close()
        start = state["start"]
        self.epoch, self.batch, self._own_random = state["epoch"], 0, state["random"]
        _set_states(self.loader, start["parts"])
        if not state["begun"]:
            return
        if state["loader"] is not None:
            self.loader.load_state_dict(state["loader"])
        set_random_state(start["random"])
        self._own_random = start["own"]
        self._start(skip=0 if state["loader"] is not None else state["batch"])
        self.batch, self._own_random = state["batch"], state["random"]

    def _start(self, skip: int = 0) -> Iterator[Any]:
        random = random_state()
        if self._streams is not None and self._own_random is None:
            self._own_random = random | {"cuda": []}  # loaders draw on the host
        self._at_start = {"random": random, "own": self._own_random, "parts": _states(self.loader)}
        for part in _parts(self.loader):
            if hasattr(part, "set_epoch"):
                part.set_epoch(self.epoch)
        began = time.perf_counter_ns()
        self._source = iter(self.loader)
        self.fetch_ns += time.perf_counter_ns() - began
        if skip:
            self._pass_over(skip)
        self._prefetcher = DevicePrefetcher(self._fetched(), self._device, streams=self._streams)
        self._ahead = iter(self._prefetcher)
        return self._ahead

    def _pass_over(self, number: int) -> None:
        if self._own_random is not None and not _has_workers(self.loader):
            set_random_state(self._own_random)
        draws = getattr(
            self._source, "_next_index", None
        )  # of torch's iterators: only which samples a batch has
        here = (
            isinstance(self.loader, DataLoader) and not _has_workers(self.loader) and _by_index(self.loader)
        )
        for taken in range(number):
            try:
                draws() if here and draws is not None else next(self._source)
            except StopIteration:
                raise InputError(
                    f"batches: the loader has {taken} in this epoch, and {number} were taken before the checkpoint; "
                    "resume with the loader that it was written with"
                ) from None

    def _end(self) -> None:
        if self.batch == 0:
            raise InputError(
                f"batches: none in epoch {self.epoch + 1}; give a DataLoader, a list, or an object whose __iter__ "
                "starts over, with at least one batch"
            )
        self._ahead, self._prefetcher = None, None
        self._moments.clear()
        self.epoch, self.batch = self.epoch + 1, 0

    def _fetched(self) -> Iterator[Any]:
        """Batches of the host, each fetched in the loader's own random state where that has one."""
        while True:
            if self._streams is not None:
                self._moments.append(self._moment())
            began = time.perf_counter_ns()
            try:
                batch = self._draw()
            finally:
                self.fetch_ns += time.perf_counter_ns() - began
            if batch is END:
                return
            yield batch

    def _draw(self) -> Any:
        if self._own_random is None or _has_workers(self.loader):
            return next(self._source, END)
        outside = random_state(devices=False)
        set_random_state(self._own_random)
        try:
            return next(self._source, END)
        finally:
            self._own_random = random_state(devices=False)
            set_random_state(outside)

    def _moment(self) -> dict[str, Any]:
        loader = self.loader.state_dict() if _is_stateful(self.loader) else None
        return {"random": self._own_random, "loader": loader}


def _length(loader: Any) -> int | None:
    if isinstance(loader, DataLoader):
        return epoch_batches(loader)
    return len(loader) if hasattr(loader, "__len__") else None


def _is_stateful(part: Any) -> bool:
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def _by_index(loader: DataLoader[Any]) -> bool:
    return not isinstance(loader.dataset, IterableDataset)


def _has_workers(loader: Any) -> bool:
    return isinstance(loader, DataLoader) and loader.num_workers > 0


def _parts(loader: Any) -> list[Any]:
    """What decides the order of a loader's samples: its samplers and random generators, each once."""
    found: dict[int, Any] = {}
    open_parts = [loader]
    while open_parts:
        part = open_parts.pop()
        inner = [getattr(part, name, None) for name in ("sampler", "batch_sampler", "generator")]
        new = [one for one in inner if one is not None and id(one) not in found]
        found.update((id(one), one) for one in new)
        open_parts += new
    return list(found.values())


def _states(loader: Any) -> list[Any]:
    return [] if _is_stateful(loader) else [_state(part) for part in _parts(loader)]


def _state(part: Any) -> Any:
    if isinstance(part, torch.Generator):
        return part.get_state()
    return part.state_dict() if _is_stateful(part) else None


def _set_states(loader: Any, states: list[Any]) -> None:
    for part, state in zip(_parts(loader), states, strict=False):
        if isinstance(part, torch.Generator):
            part.set_state(state)
        elif state is not None:
            part.load_state_dict(state)
