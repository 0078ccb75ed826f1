"""Batches that lie on the device before they are asked for."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Self

import torch

from pyrometer.errors import InputError, UsageError
from pyrometer.loading.figures import require_count
from pyrometer.tuning.prefetch.ahead import CopiesAhead
from pyrometer.tuning.prefetch.nesting import Mover
from pyrometer.tuning.prefetch.streams import DEVICES_WITH_STREAMS, Streams


class DevicePrefetcher:
    """Iterates over batches and copies them to a device on a stream of its own, ahead of their use.

    **On the CPU it does nothing**: iterating gives the iterator of `batches` itself, hence the same objects in the same
    order, each fetched when it is asked for, without a thread or a copy. On an accelerator without streams (`mps`) each
    batch is moved when it is asked for.

    **What comes out** is the same batch with every tensor on the device: tuples, named tuples, lists, mappings and
    dataclasses keep their types; objects with a method `to` that hold tensors are moved by it; everything else, and
    tensors that lie on the device already, are passed through as the same objects. A tensor keeps its `requires_grad`, but
    not its history: backward does not reach tensors of the host. Sparse, nested and wrapper tensors, tensors of another
    device, and objects that may hide tensors, are not copied ahead but when they are handed out.

    **The loader** is iterated on the thread that calls `next()`, so random numbers are drawn in the order of the calls. It
    runs up to `depth` batches ahead: what it draws from random states that the model uses too comes earlier than without,
    and after an early `break` those batches are gone where `batches` is an iterator that cannot be started anew. An
    exception of the loader is raised at the `next()` that would have raised it, after all batches before it; the next
    `next()` asks the loader again. A loader must not write to a batch that it has given away: copies may still read it.

    **The consumer** may use a batch at once on the stream that is current at the `next()` that returned it, may
    write to it in place, keep it as long as it likes, and drop it at any time: its memory is used again only when the work
    that was put on that stream before is done. For use on another stream it must do what it does for any tensor: let that
    stream wait, and call `record_stream`. Up to `depth` batches lie on the device beside those that the consumer holds, in
    memory that the allocator keeps for the stream of copies.

    Copies overlap with computation only from page-locked memory: `DataLoader(pin_memory=True)`, or `pin=True` here. From
    pageable memory the result is the same, but the host waits for each copy.

    Args:
        batches: a `DataLoader`, a list, or any other iterable; each `iter()` of the prefetcher starts it anew.
        device: where batches go.
        depth: batches that are copied ahead, at least 1. The first calls of `next()` fetch two until so many are.
        pin: copy pageable tensors to page-locked memory first, on a thread of its own.
        streams: of another kind of device, or of a simulated one.

    Raises:
        InputError: `batches` cannot be iterated, the device cannot be used here, or the depth is below 1.

    >>> batch = (torch.zeros(2), "name")
    >>> next(iter(DevicePrefetcher([batch], "cpu"))) is batch
    True
    """

    def __init__(
        self,
        batches: Iterable[Any],
        device: torch.device | str,
        *,
        depth: int = 2,
        pin: bool = False,
        streams: Streams | None = None,
    ) -> None:
        if not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
            raise InputError(
                f"batches: got {type(batches).__name__}; it must be iterable, such as a DataLoader or a list"
            )
        require_count("depth", depth)
        self.batches = batches
        self.device = streams.device if streams is not None else resolved_device(device)
        self.depth = depth
        self.pin = pin
        self._streams = streams or streams_of(self.device)
        self._passes: weakref.WeakSet[_Pass] = weakref.WeakSet()

    def __iter__(self) -> Iterator[Any]:
        """Start the batches anew; nothing is fetched before the first `next()`."""
        source = iter(self.batches)
        if self._streams is not None:
            started = _Pass(source, CopiesAhead(self._streams, pin=self.pin), self.depth)
            self._passes.add(started)
            return started
        if self.device.type == "cpu":
            return source
        return (_moved(batch, self.device) for batch in source)

    def __len__(self) -> int:
        """As many as `batches` has.

        Raises:
            TypeError: `batches` has no length.
        """
        return len(self.batches)  # type: ignore[arg-type]

    def close(self) -> None:
        """Drop what was copied ahead and end the threads of all iterations under way; a new one may be started.

        Iterations that were under way raise `UsageError` when they are continued. Nothing needs to be closed after a loop that
        ended, also by `break` or an exception: an iterator that is let go of closes itself.
        """
        for started in list(self._passes):
            started.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def resolved_device(device: torch.device | str) -> torch.device:
    """A device with its index, as tensors have it.

    Raises:
        InputError: no such device, or it cannot be used here.

    >>> resolved_device("cpu")
    device(type='cpu')
    """
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device {device}: cannot be used here ({reason}); legal are cpu, cuda, xpu and mps"
        ) from error


def streams_of(device: torch.device) -> Streams | None:
    """The streams of a device; `None` for one that has none.

    >>> streams_of(torch.device("cpu")) is None
    True
    """
    return Streams(device) if device.type in DEVICES_WITH_STREAMS else None


class _Pass:
    """One iteration."""

    def __init__(self, source: Iterator[Any], ahead: CopiesAhead, depth: int) -> None:
        self._source: Iterator[Any] | None = source
        self._ahead = ahead
        self._depth = depth
        self._ended = False
        self._failed = False
        self._release = weakref.finalize(self, ahead.close)
        self._release.atexit = False  # the device may be gone by then

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._fetch()
        if not self._ahead:
            raise StopIteration
        if len(self._ahead) == 1:
            self._failed = False  # if an exception waits, it is raised now
        return self._ahead.hand_out()

    def close(self) -> None:
        """Let go of the loader and of everything that was copied ahead."""
        self._source = None
        self._release()

    def _fetch(self) -> None:
        if self._source is None:
            raise UsageError("the prefetcher was closed during this iteration; start a new one by iter()")
        for _ in range(2):
            if self._ended or self._failed or len(self._ahead) > self._depth:
                return
            try:
                batch = next(self._source)
            except StopIteration:
                self._ended = True
            except Exception as error:  # noqa: BLE001 - it is raised in its turn
                self._failed = True
                self._ahead.submit_error(error)
            else:
                self._ahead.submit(batch)


def _moved(batch: Any, device: torch.device) -> Any:
    mover = Mover(tensor=lambda tensor: tensor.to(device), object=lambda value: value.to(device))
    return mover(batch)
