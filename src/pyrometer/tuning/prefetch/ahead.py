"""The order of copies, events and releases; knows nothing of a device but its `Streams`."""

from __future__ import annotations

import threading
from collections import deque
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch

from pyrometer.tuning.prefetch.nesting import Mover, is_plain, moved_object, tensors_in
from pyrometer.tuning.prefetch.streams import Streams


@dataclass
class Flight:
    """A batch on its way.

    Attributes:
        batch: the batch with copies in the places of its tensors; what could not go ahead is in it as it came.
        event: happens when the copies are done.
        copies: the tensors that were made on the stream for copies.
        sources: what they are copied from.
        late: whether something was left to be moved when the batch is handed out.
    """

    batch: Any
    event: Any = None
    copies: list[torch.Tensor] = field(default_factory=list)
    sources: list[torch.Tensor] = field(default_factory=list)
    late: bool = False


class CopiesAhead:
    """Batches that are copied on a stream of their own, and handed out in the order in which they came.

    Four rules keep memory from being read too early and given away too early:

    1. Copies are put on the stream for copies, and an event behind those of each batch.
    2. Before a batch is handed out, the consumer's current stream is made to wait for its event.
    3. The copies were allocated for the stream for copies. Once the consumer drops them, the allocator would give their
       memory to the next copy at once, while kernels on the consumer's stream still read it: it only knows about the
       stream that it allocated for. So every tensor is recorded as used by the consumer's stream (`record_stream`).
    4. Sources are kept until the event of their copies has happened. The allocator of page-locked memory would do so for
       memory of its own, but not for memory that others have locked.

    Tensors without a single block of memory (sparse, nested, wrappers) and objects that may hide tensors cannot be recorded,
    and tensors of another device may not be computed yet. They are not copied ahead but on the consumer's stream when they are
    handed out.

    Args:
        streams: of the device.
        pin: copy pageable tensors to page-locked memory first, on a thread of its own, which then starts the copies too.
    """

    def __init__(self, streams: Streams, *, pin: bool) -> None:
        self._streams = streams
        self._pin = pin
        self._thread = ThreadPoolExecutor(1, "pyrometer-pin", self._note_thread) if pin else None
        self._thread_id: int | None = None
        self._waiting: deque[Flight | Future[Flight] | Exception] = deque()
        self._departed: deque[tuple[Any, list[torch.Tensor]]] = deque()

    def __len__(self) -> int:
        """Batches and exceptions that wait to be handed out."""
        return len(self._waiting)

    def submit(self, batch: Any) -> None:
        """Start the copies of a batch; an exception in doing so is raised when it is the batch's turn."""
        if self._thread is not None:
            self._waiting.append(self._thread.submit(self._started, batch))
            return
        try:
            self._waiting.append(self._started(batch))
        except Exception as error:  # noqa: BLE001 - it is raised in its turn
            self._waiting.append(error)

    def submit_error(self, error: Exception) -> None:
        """Put an exception in the place of a batch."""
        self._waiting.append(error)

    def hand_out(self) -> Any:
        """The oldest batch, ready for this thread's current stream.

        Raises:
            Exception: whatever was raised in the batch's place.
        """
        self._release_sources()
        first = self._waiting[0]
        if isinstance(first, Future):
            futures.wait([first])  # interrupted here, nothing is lost
        self._waiting.popleft()
        if isinstance(first, Exception):
            raise first
        flight = first.result() if isinstance(first, Future) else first
        if flight.event is not None:
            self._streams.wait(flight.event)
            for tensor in flight.copies:
                self._streams.hold(tensor)
            self._departed.append((flight.event, flight.sources))
        return self._moved_now(flight.batch) if flight.late else flight.batch

    def close(self) -> None:
        """Drop what was not handed out, end the thread, and wait for copies that still read from the host."""
        if self._thread is not None:
            # The garbage collector may call this on any thread, also on the one that would be waited for.
            self._thread.shutdown(wait=threading.get_ident() != self._thread_id, cancel_futures=True)
        flights = [flight for flight in map(_started_flight, self._waiting) if flight is not None]
        for event in (*(event for event, _ in self._departed), *(flight.event for flight in flights)):
            if event is not None:
                self._streams.finish(event)
        self._waiting.clear()
        self._departed.clear()

    def _note_thread(self) -> None:
        self._thread_id = threading.get_ident()

    def _started(self, batch: Any) -> Flight:
        flight = Flight(batch)
        mover = Mover(
            tensor=lambda tensor: self._copied(tensor, flight),
            object=lambda value: self._moved(value, flight),
        )
        # Copies are ordinary tensors whatever mode the consumer is in now: it may be in another when it uses them.
        with self._streams.copying(), torch.inference_mode(mode=False), torch.no_grad():
            try:
                flight.batch = mover(batch)
            except Exception:
                # What was copied before the part that failed still reads its sources.
                self._streams.finish(self._streams.record())
                raise
            if flight.sources:
                flight.event = self._streams.record()
        return flight

    def _copied(self, tensor: torch.Tensor, flight: Flight) -> torch.Tensor:
        if self._streams.is_here(tensor):
            return tensor
        if not _can_go_ahead(tensor):
            flight.late = True
            return tensor
        source = self._streams.pin(tensor) if self._pin else tensor
        flight.sources.append(source)
        copied = self._streams.copy(source).requires_grad_(tensor.requires_grad)
        flight.copies.append(copied)
        return copied

    def _moved(self, value: Any, flight: Flight) -> Any:
        sources, complete = tensors_in(value)
        if not complete or not all(
            self._streams.is_here(source) or _can_go_ahead(source) for source in sources
        ):
            flight.late = True
            return value
        flight.sources += sources
        if self._pin and callable(getattr(value, "pin_memory", None)):
            value = value.pin_memory()
            flight.sources += tensors_in(value)[0]
        given = {id(tensor) for tensor in flight.sources}
        moved = moved_object(value, self._streams.device)
        flight.copies += [
            tensor
            for tensor in tensors_in(moved)[0]
            if id(tensor) not in given and self._streams.is_here(tensor)
        ]
        return moved

    def _moved_now(self, batch: Any) -> Any:
        here, device = self._streams.is_here, self._streams.device
        mover = Mover(
            tensor=lambda tensor: tensor if here(tensor) else tensor.to(device),
            object=lambda value: value if all(map(here, tensors_in(value)[0])) else value.to(device),
        )
        return mover(batch)

    def _release_sources(self) -> None:
        while self._departed and self._streams.is_done(self._departed[0][0]):
            self._departed.popleft()


def _can_go_ahead(tensor: torch.Tensor) -> bool:
    """Whether a copy on another stream is safe: what a device has still to compute is ordered by its own streams only."""
    return is_plain(tensor) and tensor.device.type == "cpu"


def _started_flight(waiting: Flight | Future[Flight] | Exception) -> Flight | None:
    if isinstance(waiting, Future):
        failed = not waiting.done() or waiting.cancelled() or waiting.exception() is not None
        return None if failed else waiting.result()
    return waiting if isinstance(waiting, Flight) else None
