"""Find the instructions of a pickle with array operations, at some hundred megabytes a second.

Where one instruction ends the next begins, which is sequential. But streams of instructions of varying length fall into
step by themselves: walked from a wrong byte, they meet the right path after a few steps. So each row of the text is walked
from its first byte, all rows at once; then the true path is followed from row to row, stepping alone only until it
meets what was walked already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyrometer.memory.snapshots.reading.opcodes import FIXED, PREFIXED, table

ROW = 1024
TOO_LONG = 1 << 30
"""No instruction is as long; one that claims to be counts as this long."""
_LENGTHS = np.maximum(table(FIXED), 1)
_PREFIXES = table(PREFIXED).astype(np.uint8)


@dataclass(frozen=True)
class Tokens:
    """The instructions that begin in a piece of text."""

    starts: npt.NDArray[np.int64]
    """Where each begins, from the start of the piece."""
    following: int
    """Where the one after the last begins; may lie far behind the piece."""
    too_long: bool
    """Whether one claims to be longer than any can be."""


def tokens(text: npt.NDArray[np.uint8], first: int, num_bytes: int) -> Tokens:
    """The instructions from `first` on that begin within the first `num_bytes` of `text`.

    Unknown opcodes count as one byte long; who reads on must look for them. `text` must reach nine bytes beyond.
    """
    if first >= num_bytes:
        return Tokens(np.zeros(0, np.int64), first, too_long=False)
    lengths = _lengths(text, num_bytes)
    visited = np.zeros(num_bytes, np.bool_)
    exits = _walk_rows(lengths, visited)
    end = _true_path(lengths, visited, exits, first)
    starts = np.flatnonzero(visited)
    return Tokens(starts, end, too_long=bool(lengths[starts].max() >= TOO_LONG))


def _lengths(text: npt.NDArray[np.uint8], num_bytes: int) -> npt.NDArray[np.int32]:
    """For each byte, how long the instruction would be if one began here."""
    piece = text[:num_bytes]
    lengths: npt.NDArray[np.int32] = _LENGTHS.take(piece)
    prefixes = _PREFIXES.take(piece)
    for width in (1, 4, 8):
        at = np.flatnonzero(prefixes == width)
        size = text[at + 1].astype(np.uint64)
        for k in range(1, width):
            size |= text[at + 1 + k].astype(np.uint64) << np.uint64(8 * k)
        lengths[at] = np.minimum(size + np.uint64(1 + width), np.uint64(TOO_LONG)).astype(np.int32)
    return lengths


def _walk_rows(lengths: npt.NDArray[np.int32], visited: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Walk every row from its first byte; returns where each walk leaves its row."""
    num_bytes = len(lengths)
    walkers: npt.NDArray[np.int64] = np.arange(0, num_bytes, ROW)
    ends = np.minimum(walkers + ROW, num_bytes)
    exits: npt.NDArray[np.int64] = ends.copy()
    rows = np.arange(len(walkers))
    while len(walkers):
        visited[walkers] = True
        walkers = walkers + lengths.take(walkers)
        inside = walkers < ends
        if not inside.all():
            outside = ~inside
            exits[rows[outside]] = walkers[outside]
            walkers, ends, rows = walkers[inside], ends[inside], rows[inside]
    return exits


def _true_path(
    lengths: npt.NDArray[np.int32],
    visited: npt.NDArray[np.bool_],
    exits: npt.NDArray[np.int64],
    first: int,
) -> int:
    """Leave only the marks that the path from `first` meets; returns where it ends."""
    num_bytes, position, cleared = len(visited), first, 0
    seen, length = visited.view(np.uint8).data, lengths.data  # single items are faster to get from these
    leaves = exits.tolist()
    while position < num_bytes:
        row = position // ROW
        end = min((row + 1) * ROW, num_bytes)
        alone = []
        while position < end and not seen[position]:
            alone.append(position)
            position += length[position]
        visited[cleared : min(position, end)] = False
        for one in alone:
            seen[one] = 1
        position = position if position >= end else leaves[row]
        cleared = end
    visited[cleared:] = False
    return position
