"""A device that does what it was told as late as it likes, and uses memory again as soon as it may."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque

import numpy as np
import pytest
import torch


class Block:
    """Device memory, full of rubbish until something is copied to it."""

    def __init__(self, num_bytes):
        self.memory = np.full(num_bytes, 0xAB, dtype=np.uint8)
        self.users = set()


class Event:
    def __init__(self):
        self.done = False


class SimulatedStreams:
    """Streams as queues of work that `run` takes from, in the order of each but in any order among them.

    Memory is allocated as a caching allocator does: what was freed goes to the next request of that size at once, because
    only the stream for copies is known to use it; unless other streams were recorded as users, whose work is waited for.
    Reading and writing happens when work is run, not when it is put on a queue, so errors of order show in the values.
    """

    def __init__(self):
        self.device = torch.device("cpu")
        self._thread = threading.local()  # as on a device, each thread has a current stream of its own
        self.queues = {"copies": deque(), "main": deque(), "other": deque()}
        self.free = []
        self.unreleased = []
        self.blocks = {}
        self.lost_sources = 0
        self.num_reused = 0
        self.pinned = []

    @property
    def current(self):
        """The calling thread's current stream."""
        return getattr(self._thread, "stream", "main")

    @current.setter
    def current(self, stream):
        self._thread.stream = stream

    # What the prefetcher calls.

    def is_here(self, tensor):
        return tensor.layout == torch.strided and tensor.data_ptr() in self.blocks

    @contextlib.contextmanager
    def copying(self):
        before, self.current = self.current, "copies"
        try:
            yield
        finally:
            self.current = before

    def copy(self, tensor):
        assert self.current == "copies"
        block = self._allocate(tensor.numel() * tensor.element_size())
        reshape = torch.from_numpy(block.memory).view(tensor.dtype).reshape(tensor.shape)
        self.blocks[reshape.data_ptr()] = block
        weakref.finalize(reshape, self._drop, reshape.data_ptr(), block).atexit = False
        source = weakref.ref(tensor)
        self.queues["copies"].append(lambda: self._transfer(source, block))
        return reshape

    def record(self):
        event = Event()
        self.queues["copies"].append(lambda: setattr(event, "done", True))
        return event

    def wait(self, event):
        self.queues[self.current].append(event)

    def hold(self, tensor):
        self.blocks[tensor.data_ptr()].users.add(self.current)

    def is_done(self, event):
        return event.done

    def finish(self, event):
        while not event.done:
            assert self.run("copies")

    def pin(self, tensor):
        self.pinned.append(weakref.ref(tensor))
        return tensor.clone()

    # What the consumer calls.

    def read(self, tensor, results):
        """Put a kernel on the current stream that reads a tensor; what it saw is appended when it runs."""
        block, dtype, shape = self.blocks[tensor.data_ptr()], tensor.dtype, tensor.shape
        self.queues[self.current].append(
            lambda: results.append(torch.from_numpy(block.memory.copy()).view(dtype).reshape(shape))
        )

    def write(self, tensor, value):
        """Put a kernel on the current stream that fills a tensor."""
        block, filled = self.blocks[tensor.data_ptr()], torch.full_like(tensor, value)
        self.queues[self.current].append(
            lambda: block.memory.__setitem__(slice(None), filled.numpy().view(np.uint8))
        )

    def run(self, stream):
        """Do the next thing on a stream; false where there is none, or it waits for an event."""
        queue = self.queues[stream]
        if not queue or (isinstance(queue[0], Event) and not queue[0].done):
            return False
        first = queue.popleft()
        if not isinstance(first, Event):
            first()
        return True

    def drain(self):
        """Do everything."""
        while any(self.queues.values()):
            before = {name: len(queue) for name, queue in self.queues.items()}
            for name in self.queues:
                self.run(name)
            assert before != {name: len(queue) for name, queue in self.queues.items()}, "deadlock"

    def _allocate(self, num_bytes):
        for block, events in list(self.unreleased):
            if all(event.done for event in events):
                self.unreleased.remove((block, events))
                self.free.append(block)
        for block in reversed(self.free):
            if block.memory.nbytes == num_bytes:
                self.free.remove(block)
                self.num_reused += 1
                return block
        return Block(num_bytes)

    def _drop(self, address, block):
        del self.blocks[address]
        events = []
        for stream in block.users:
            event = Event()
            self.queues[stream].append(lambda event=event: setattr(event, "done", True))
            events.append(event)
        block.users.clear()
        self.unreleased.append((block, events))

    def _transfer(self, source, block):
        tensor = source()
        if tensor is None:
            self.lost_sources += 1
            return
        block.memory[:] = np.frombuffer(tensor.detach().contiguous().numpy().tobytes(), dtype=np.uint8)


@pytest.fixture
def simulated():
    """The class, so that tests can make one, or one that forgets something."""
    return SimulatedStreams
