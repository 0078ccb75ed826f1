"""The event log: 16 bytes per event in a memory-mapped file, which survives whatever kills the process."""

from __future__ import annotations

import mmap
import os
import time
from time import perf_counter_ns

from . import kinds

WORD_BYTES = kinds.LOG_WORD_BYTES
CHUNK_WORDS = 1 << 15
TAIL_WORDS = 128
MAX_WORDS = 1 << 25  # 256 MiB: about 17 million events
NUM_LOW_DESCRIPTORS = 64


class EventLog:
    """Appends events; full or detached it drops them, and never raises.

    The address space is mapped once; the file grows by chunks that are written before they are used, because
    touching a page that the disk has no room for would kill the process.

    Attributes:
        words: the part that is written to; beyond it is `IndexError`.
        next_word: where in it the next event goes.
        is_full: everything is dropped.
    """

    __slots__ = ("_map", "_num_allocated", "_path", "_whole", "is_full", "next_word", "words")

    def __init__(self, path: str) -> None:
        self._path = path
        self._map = _map_file(path, MAX_WORDS * WORD_BYTES)
        self._whole = memoryview(self._map).cast("q")
        self.words = self._whole[:0]
        self._num_allocated = 0
        self.next_word = 0
        self.is_full = False
        self._extend()
        for position, value in enumerate((kinds.MAGIC, kinds.VERSION, perf_counter_ns(), time.time_ns())):
            self.words[position] = value
        self.next_word = kinds.HEADER_WORDS

    def add(self, event_word: int) -> int:
        """Append an event that happens now; returns its time in ns."""
        index = self.next_word
        time_ns = perf_counter_ns()
        try:
            self.words[index] = time_ns
            # The word comes second: without it the event is not there.
            self.words[index + 1] = event_word
        except IndexError:
            return self.add_at(time_ns, event_word) if self._extend() else time_ns
        self.next_word = index + 2
        return time_ns

    def add_at(self, time_ns: int, event_word: int) -> int:
        """Append an event that happened at `time_ns`."""
        index = self.next_word
        if index + 1 < len(self.words) or self._extend():
            self.words[index] = time_ns
            self.words[index + 1] = event_word
            self.next_word = index + 2
        return time_ns

    def open_tail(self) -> None:
        """Give free what was kept back for the last few events."""
        self.words = self._whole[: self._num_allocated]

    def detach(self) -> None:
        """Drop everything from now on: after a fork the log belongs to the parent process."""
        self.is_full = True
        self._num_allocated = 0
        self.words = self._whole[:0]

    def _extend(self) -> bool:
        if self.is_full:
            return False
        grown = self._num_allocated + CHUNK_WORDS
        self.is_full = grown > MAX_WORDS or not _write_zeros(self._path, self._num_allocated, CHUNK_WORDS)
        if self.is_full:
            return False
        if self._num_allocated and hasattr(mmap, "MADV_DONTNEED"):
            # What is written is in the file; out of our address space it does not count as the script's memory.
            past = (self._num_allocated - CHUNK_WORDS) * WORD_BYTES
            self._map.madvise(mmap.MADV_DONTNEED, past, (CHUNK_WORDS - 2 * TAIL_WORDS) * WORD_BYTES)
        self._num_allocated = grown
        self.words = self._whole[: grown - TAIL_WORDS]
        return True


def _map_file(path: str, num_bytes: int) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    # The map keeps a descriptor of its own. Scripts may count on getting the low ones, so it is given a high one.
    held = [os.dup(descriptor) for _ in range(NUM_LOW_DESCRIPTORS)]
    try:
        os.ftruncate(descriptor, num_bytes)
        return mmap.mmap(descriptor, num_bytes)
    finally:
        for each in (*held, descriptor):
            os.close(each)


def _write_zeros(path: str, start_words: int, num_words: int) -> bool:
    """Claim room on the disk; false when there is none."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        os.pwrite(descriptor, bytes(num_words * WORD_BYTES), start_words * WORD_BYTES)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
