"""Summaries of many ranks in a file of their own: merging holds of each rank little more than its row."""

from __future__ import annotations

import sys
import tempfile
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from pyrometer.errors import InputError
from pyrometer.trace.jobs.job import RankRow
from pyrometer.trace.jobs.summary import RankSummary

IN_MEMORY_BYTES = 8 << 20
"""Of all summaries together, up to which there is no file."""


class Held(NamedTuple):
    """What is held of a summary; the rest is asked of `Summaries`."""

    row: RankRow  # nothing is known of its waiting yet
    base_ns: int
    start_ns: int
    world_size: int | None
    shards_parameters: bool
    is_truncated: bool
    num_calls: int  # without those that are left out
    place: int  # in the file
    num_bytes: int

    @property
    def rank(self) -> int:
        """Its rank."""
        return self.row.rank

    @property
    def host(self) -> str | None:
        """The machine."""
        return self.row.host

    @property
    def path(self) -> str:
        """The trace's file."""
        return self.row.path

    @property
    def num_calls_left_out(self) -> int:
        """Collectives that are counted alone."""
        return self.row.num_collectives - self.num_calls


class Summaries:
    """Puts summaries away, and gives them back one at a time; the file goes with the context."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - closed in __exit__
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def put(self, summary: RankSummary) -> Held:
        """Keep one.

        Raises:
            InputError: there is no room for it.
        """
        # A path need not be Unicode; it stays in the row.
        whole = msgspec.msgpack.encode(msgspec.structs.replace(summary, path=""))
        try:
            self._file.seek(self._end)
            self._file.write(whole)
        except OSError as error:
            raise InputError(
                f"{tempfile.gettempdir()}: summaries of ranks cannot be kept there ({error.strerror}); "
                "set TMPDIR to a folder with room"
            ) from error
        held = Held(
            row=_row(summary),
            base_ns=summary.base_ns,
            start_ns=summary.start_ns,
            world_size=summary.world_size,
            shards_parameters=summary.shards_parameters,
            is_truncated=summary.is_truncated,
            num_calls=summary.calls.num_rows,
            place=self._end,
            num_bytes=len(whole),
        )
        self._end += len(whole)
        return held

    def of(self, held: Held) -> RankSummary:
        """The summary, without its path."""
        self._file.seek(held.place)
        return msgspec.msgpack.decode(self._file.read(held.num_bytes), type=RankSummary)


def _row(summary: RankSummary) -> RankRow:
    steps = summary.steps
    return RankRow(
        rank=summary.rank,
        path=summary.path,
        host=summary.host,
        span_ns=summary.span_ns,
        parts={sys.intern(name): ns for name, ns in summary.parts.items()},
        compute_ns=summary.compute_ns,
        communication_ns=summary.communication_ns,
        exposed_communication_ns=summary.exposed_communication_ns,
        waited_ns=0,
        num_collectives=summary.calls.num_rows + summary.num_calls_left_out,
        num_steps=len(steps),
        step_ns=sum(step.end_ns - step.start_ns for step in steps) // len(steps) if steps else None,
        num_lost_events=summary.num_lost_events,
    )
