"""Packing sequences into rows of one length, so that nearly nothing is padded and nothing recompiles.

Best fit by falling length: each sequence goes to the fullest row that still has room for it. That needs at most 11/9 of the
fewest possible rows, and four more (Johnson, 1974); no packing needs fewer than the tokens divided by the capacity.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.tuning.shapes.record import PackingReport
from pyrometer.tuning.shapes.sampler import batch_padding, whole_lengths


@dataclass(frozen=True)
class Piece:
    """A sequence in a row, or a part of one."""

    sequence: int
    start: int
    length: int


Row = list[Piece]


@dataclass(frozen=True)
class Packing:
    """Which sequence lies where."""

    capacity: int
    rows: list[Row]
    lengths: list[int]

    def tokens(self, sequences: Sequence[torch.Tensor], pad_value: float = 0) -> torch.Tensor:
        """The rows as one tensor (row, position, …), padded at the ends.

        >>> pack_sequences([2, 1], 4).tokens([torch.tensor([7, 8]), torch.tensor([9])]).tolist()
        [[7, 8, 9, 0]]
        """
        first = sequences[0]
        packed = first.new_full((len(self.rows), self.capacity, *first.shape[1:]), pad_value)
        for place, piece in self._places():
            packed[place] = sequences[piece.sequence][piece.start : piece.start + piece.length]
        return packed

    def position_ids(self) -> torch.Tensor:
        """The place of every token within its own sequence (row, position); 0 at padding.

        >>> pack_sequences([2, 1], 4).position_ids().tolist()
        [[0, 1, 0, 0]]
        """
        tensor = torch.zeros(len(self.rows), self.capacity, dtype=torch.int64)
        for place, piece in self._places():
            tensor[place] = torch.arange(piece.start, piece.start + piece.length)
        return tensor

    def segment_ids(self) -> torch.Tensor:
        """The number of its sequence within the row, from 1, for every token (row, position); 0 at padding.

        >>> pack_sequences([2, 1], 4).segment_ids().tolist()
        [[1, 1, 2, 0]]
        """
        tensor = torch.zeros(len(self.rows), self.capacity, dtype=torch.int64)
        for place, piece in self._places():
            tensor[place] = self.rows[place[0]].index(piece) + 1
        return tensor

    def segment_mask(self, *, causal: bool = False) -> torch.Tensor:
        """Which token may attend to which (row, position, position): true within one sequence, and at padding to itself.

        >>> pack_sequences([2, 1], 3).segment_mask(causal=True)[0].int().tolist()
        [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
        """
        ids = self.segment_ids()
        alike = (ids[:, :, None] == ids[:, None, :]) & (ids[:, :, None] > 0)
        if causal:
            alike = alike.tril()
        return alike | torch.eye(self.capacity, dtype=torch.bool)

    def cu_seqlens(self) -> torch.Tensor:
        """Where the sequences of all rows begin and end if rows lie behind one another, as kernels for variable lengths take it.

        Padding at the end of a row counts as a sequence of its own, so that the last number is rows × capacity.

        >>> pack_sequences([2, 1], 4).cu_seqlens().tolist()
        [0, 2, 3, 4]
        """
        ends = [0]
        for row, pieces in enumerate(self.rows):
            for piece in pieces:
                ends.append(ends[-1] + piece.length)
            if ends[-1] < (row + 1) * self.capacity:
                ends.append((row + 1) * self.capacity)
        return torch.tensor(ends, dtype=torch.int32)

    def unpack(self, packed: torch.Tensor) -> list[torch.Tensor]:
        """What belongs to each sequence, from a tensor of rows (row, position, …); the way back from `tokens`."""
        parts: list[list[tuple[int, torch.Tensor]]] = [[] for _ in self.lengths]
        for place, piece in self._places():
            parts[piece.sequence].append((piece.start, packed[place]))
        return [torch.cat([part for _, part in sorted(own, key=lambda one: one[0])]) for own in parts]

    def report(self, batch_size: int | None = None) -> PackingReport:
        """Padding before, in batches of so many sequences in the given order, and after.

        Args:
            batch_size: sequences per batch before; by default as many as make a batch of about eight rows.
        """
        tokens = sum(self.lengths)
        typical = max(1, round(8 * len(self.lengths) / max(len(self.rows), 1)))
        size = min(batch_size or typical, len(self.lengths))
        batches = [
            list(range(start, min(start + size, len(self.lengths))))
            for start in range(0, len(self.lengths), size)
        ]
        return PackingReport(
            num_sequences=len(self.lengths),
            num_rows=len(self.rows),
            capacity=self.capacity,
            num_tokens=tokens,
            padding_before=batch_padding(self.lengths, batches),
            padding_after=1 - tokens / (len(self.rows) * self.capacity),
            batch_size=size,
            lower_bound_rows=-(-tokens // self.capacity),
        )

    def _places(self) -> Iterator[tuple[tuple[int, slice], Piece]]:
        """Row and columns of every piece."""
        for row, pieces in enumerate(self.rows):
            column = 0
            for piece in pieces:
                yield (row, slice(column, column + piece.length)), piece
                column += piece.length


def pack_sequences(lengths: Sequence[int], capacity: int, *, split: bool = False) -> Packing:
    """Put sequences into as few rows of one length as best fit by falling length finds.

    Args:
        lengths: of the sequences.
        capacity: length of a row.
        split: cut sequences that are longer than a row into parts that go to several rows; otherwise they are refused.

    Raises:
        InputError: no sequence, a length that is no whole number of at least 1, a capacity below 1, or a sequence longer than a row.

    >>> [[piece.length for piece in row] for row in pack_sequences([5, 3, 4, 2], 7).rows]
    [[5, 2], [4, 3]]
    """
    given: list[int] = whole_lengths(lengths).tolist()
    require_count("capacity", capacity)
    longest = max(range(len(given)), key=lambda sequence: given[sequence])
    if given[longest] > capacity and not split:
        raise InputError(
            f"lengths: sequence {longest} has {given[longest]} tokens, more than a row of {capacity}; raise the capacity, cut "
            "the sequence, or pass split=True"
        )
    pieces = [piece for number, length in enumerate(given) for piece in _pieces(number, length, capacity)]
    pieces.sort(key=lambda piece: (-piece.length, piece.sequence, piece.start))
    rows: list[Row] = []
    room: list[tuple[int, int]] = []  # (free, row), rising
    for piece in pieces:
        place = bisect.bisect_left(room, (piece.length, -1))
        if place == len(room):
            rows.append([piece])
            bisect.insort(room, (capacity - piece.length, len(rows) - 1))
            continue
        free, row = room.pop(place)
        rows[row].append(piece)
        bisect.insort(room, (free - piece.length, row))
    return Packing(capacity, rows, given)


def _pieces(number: int, length: int, capacity: int) -> Iterator[Piece]:
    for start in range(0, length, capacity):
        yield Piece(number, start, min(capacity, length - start))
