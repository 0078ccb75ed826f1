"""Where a step of a running script ends, decided as it happens.

As it is decided afterwards from the log: at the end of an optimizer's step, else where the loader is asked for the next batch,
else where the outermost module is called again. The better mark wins, and counting begins anew with it.
"""

from __future__ import annotations

from . import kinds

_RANKS = {kinds.FORWARD_BEGIN: 1, kinds.DATA_BEGIN: 2, kinds.OPTIMIZER_END: 3}
_BEST = 3
# With a backward pass an optimizer should follow; after so many steps without one it is not torch's.
PATIENCE = 100

# What `StepEnds.at` answers, to be or-ed.
STEP = 1  # a step ends here
BETTER = 2  # this is a better mark than all before, whose steps do not count
ANOTHER = 4  # one more optimizer, which takes turns with those before


class StepEnds:
    """Told of all that begins and ends in the script's main thread."""

    __slots__ = ("_closing", "_patience", "_saw_backward", "_seen", "rank")

    def __init__(self) -> None:
        self.rank = 0
        self._seen: set[int] = set()
        self._closing: int | None = None
        self._saw_backward = False
        self._patience = PATIENCE

    @property
    def is_best(self) -> bool:
        """Whether no better mark can come."""
        return self.rank == _BEST

    def at(self, kind: int, value: int) -> int:
        """Something of this kind happens to this object: what that means, of `STEP`, `BETTER` and `ANOTHER`."""
        self._saw_backward |= kind == kinds.BACKWARD_BEGIN
        rank = _RANKS.get(kind, 0)
        if rank == 0 or rank < self.rank:
            return 0
        found = BETTER if rank > self.rank else 0
        if found:
            self.rank, self._seen, self._closing = rank, set(), None
        if rank == _BEST and value not in self._seen:
            found |= ANOTHER
        if not self._closes(rank, value):
            return found
        if rank < _BEST and self._saw_backward and self._patience > 0:
            self._patience -= 1
            return found
        return found | STEP

    def _closes(self, rank: int, value: int) -> bool:
        """Whether a step ends here: at the last optimizer of those that take turns, at the first of what recurs."""
        new = value not in self._seen
        self._seen.add(value)
        if rank == _BEST:
            self._closing = value if new else self._closing
        elif self._closing is None and not new:
            self._closing = value
        return value == self._closing
