"""Device work by stream: who launched it, what it queues behind, and how long the device usually takes to start it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_kind
from pyrometer.trace.rows import IntArray, row_numbers

NEVER = np.iinfo(np.int64).min
CALLS = (Kind.RUNTIME.value, Kind.DRIVER.value)


@dataclass(frozen=True)
class Work:
    """Kernels, copies and memsets in order of stream and start; all arrays are of one length."""

    event: IntArray  # row of `events`
    lane: IntArray  # stream, as a row of `tracks`
    start: IntArray
    end: IntArray
    call: (
        IntArray  # what launched it, a row of `events`: the call, else the operator that it names; -1 unknown
    )
    launched: IntArray  # when the call began; when the work began, where no call is known
    in_call: IntArray  # how long the call took, ns; 0 unknown
    thread: IntArray  # of the call, a row of `tracks`; -1 unknown
    before: IntArray  # the work of the same stream that ends last among those begun earlier; -1 none
    device: IntArray
    stream: IntArray
    is_copy: npt.NDArray[np.bool_]
    num_early: int  # work that begins before its launch, which is then taken as unknown

    def __len__(self) -> int:
        return len(self.event)


def device_work(events: pl.DataFrame) -> Work:
    """Collect the device work of a linked trace."""
    frame = events.filter(is_kind(*DEVICE_WORK) & pl.col("track").is_not_null()).sort(
        "track", maintain_order=True
    )
    start, end = frame["start_ns"].to_numpy().copy(), frame["end_ns"].to_numpy().copy()
    lane = frame["track"].to_numpy().astype(np.int64)
    call = frame.select(pl.coalesce("parent", "op").cast(pl.Int64).fill_null(-1)).to_series().to_numpy()
    launched = events["start_ns"].to_numpy()[call] if len(call) else start
    thread = row_numbers(events["track"])[call] if len(call) else call
    took = events["dur_ns"].to_numpy()[call] if len(call) else start
    early = (call >= 0) & (launched > start)
    call = np.where(early, -1, call)
    return Work(
        event=frame["event"].to_numpy().astype(np.int64),
        lane=lane,
        start=start,
        end=end,
        call=call,
        launched=np.where(call >= 0, launched, start),
        in_call=np.where(call >= 0, took, 0),
        thread=np.where(call >= 0, thread, -1),
        before=_before(lane, end),
        device=row_numbers(frame["device"]),
        stream=frame["stream"].fill_null(-1).to_numpy(),
        is_copy=(frame["kind"] == Kind.MEMCPY.value).to_numpy(),
        num_early=int(early.sum()),
    )


def lane_slices(lane: IntArray) -> list[tuple[int, int]]:
    """First and past-the-last index of each run of equal lanes."""
    bounds = np.flatnonzero(np.append(np.diff(lane, prepend=lane[:1] - 1) != 0, len(lane) > 0)).tolist()
    return list(pairwise(bounds))


def _before(lane: IntArray, end: IntArray) -> IntArray:
    found = np.full(len(lane), -1, np.int64)
    for low, high in lane_slices(lane):
        ends = end[low:high]
        latest = np.where(ends == np.maximum.accumulate(ends), np.arange(low, high), -1)
        found[low + 1 : high] = np.maximum.accumulate(latest)[:-1]
    return found


class Streams:
    """Answers what a stream had been given before a moment, and what it was given next."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.slices = lane_slices(work.lane)
        self.of_work = np.zeros(len(work), np.int64)
        # Work without a launch was launched no earlier than what stands before it in the stream.
        self._launched = np.where(work.call >= 0, work.launched, NEVER)
        self._ends = work.end.copy()
        self._latest = np.arange(len(work))
        for i, (low, high) in enumerate(self.slices):
            self.of_work[low:high] = i
            self._launched[low:high] = np.maximum.accumulate(self._launched[low:high])
            self._ends[low:high] = np.maximum.accumulate(work.end[low:high])
            newest = np.where(self._ends[low:high] == work.end[low:high], np.arange(low, high), -1)
            self._latest[low:high] = np.maximum.accumulate(newest)

    def last(self, which: int, before: IntArray, by: IntArray) -> IntArray:
        """Of one stream the work that ends last among what was launched before and had ended by these moments; -1 if none."""
        low, high = self.slices[which]
        launched = np.searchsorted(self._launched[low:high], before, side="left")
        ended = np.searchsorted(self._ends[low:high], by, side="right")
        found = np.minimum(launched, ended) - 1
        return np.where(found >= 0, self._latest[low + np.maximum(found, 0)], -1)

    def next(self, which: int, after: int) -> int:
        """The first work that one stream was given after a moment; -1 if none."""
        low, high = self.slices[which]
        found = low + int(np.searchsorted(self._launched[low:high], after, side="left"))
        return found if found < high else -1

    def named(self, stream: int | None, device: int | None) -> list[int]:
        """The streams of this number; on any device, where it is not known."""
        return [
            i
            for i, (low, _) in enumerate(self.slices)
            if self.work.stream[low] == stream and device in (None, -1, int(self.work.device[low]))
        ]
