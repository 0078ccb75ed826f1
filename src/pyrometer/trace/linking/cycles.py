"""Finding what repeats in a sequence, such as `A B B B B C`: the period of `B`, and where each `B` begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pyrometer.trace.rows import IntArray

BoolArray = npt.NDArray[np.bool_]

MIN_REPEATS = 3
MIN_MATCH = 0.9
"""Share of a period that must equal the one after it: a step that logs something is still a step."""

TOLERANCE = 0.02
NUM_PROJECTIONS = 4
NUM_CANDIDATES = 48


@dataclass(frozen=True)
class Cycle:
    """What repeats in a sequence of ids."""

    period: int  # length of a repetition; of `find_cycle_of_runs` in runs
    starts: IntArray  # positions at which a repetition begins, in order
    stop: int  # position after the last element of the last repetition
    coverage: float  # share of the sequence that lies in repetitions
    before: int  # elements before the first repetition that do not end another one
    rest: int  # elements after the last repetition that do not begin another one


def find_cycle(ids: IntArray) -> Cycle | None:
    """The shortest cycle that explains a sequence about as well as the best one does; none below three repetitions.

    Candidates are the peaks of the autocorrelation of the sequence, each id replaced by a random sign (an unbiased
    estimate of how many elements equal the one `period` places later, for all periods by a few Fourier transforms);
    each is then checked exactly.

    >>> found = find_cycle(np.array([9, 9, 4] + [1, 2, 3] * 5 + [7]))
    >>> found.period, found.starts.tolist(), found.before, found.rest
    (3, [3, 6, 9, 12, 15], 3, 1)
    >>> find_cycle(np.arange(40)) is None
    True
    """
    best: tuple[int, BoolArray] | None = None
    most = 0.0
    for period in _candidates(ids):
        inside = _repeating(ids, period)
        share = float(inside.mean())
        if share > most + TOLERANCE:
            best, most = (period, inside), share
    return None if best is None else _cut(ids, *best)


def find_cycle_of_runs(ids: IntArray) -> Cycle | None:
    """The same with neighbours that are equal taken as one: `A A A B A A B A A A B` repeats `A B`.

    Loops within a step, such as one operator per parameter, neither look like steps nor need to be of one length. A
    sequence that is nothing but one run of equal elements is taken as it is.

    >>> find_cycle_of_runs(np.array([1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2])).starts.tolist()
    [0, 4, 7]
    """
    heads = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
    if len(heads) <= 1:
        return find_cycle(ids)
    cycle = find_cycle(ids[heads])
    if cycle is None:
        return None
    ends = np.append(heads, len(ids))
    return replace(cycle, starts=heads[cycle.starts], stop=int(ends[cycle.stop]))


def _candidates(ids: IntArray) -> list[int]:
    """Periods worth checking, the shortest first."""
    longest = len(ids) // MIN_REPEATS
    if longest <= NUM_CANDIDATES:
        return list(range(1, longest + 1))
    unique, dense = np.unique(ids, return_inverse=True)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (NUM_PROJECTIONS, len(unique)))
    size = 1 << (2 * len(ids) - 1).bit_length()
    spectrum = np.fft.rfft(signs[:, dense], size)
    total = np.fft.irfft(np.abs(spectrum) ** 2, size).mean(0)[1 : longest + 1]
    share = total / np.arange(len(ids) - 1, len(ids) - longest - 1, -1)
    peaks = np.argpartition(-share, NUM_CANDIDATES)[:NUM_CANDIDATES]
    early = np.flatnonzero(share >= 0.8 * share.max())[
        :NUM_CANDIDATES
    ]  # of many multiples the first is wanted
    return sorted({int(place) + 1 for place in np.concatenate([peaks, early])})


def _repeating(ids: IntArray, period: int) -> BoolArray:
    """Which elements lie in a stretch of at least three repetitions."""
    equal = ids[period:] == ids[:-period]
    same = np.concatenate([[0], np.cumsum(equal)])
    good = (same[period:] - same[:-period]) >= MIN_MATCH * period  # a whole period equals the one after it
    matches = np.flatnonzero(equal)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    inside = np.zeros(len(ids) + 1, np.int64)
    for low, high in edges.reshape(-1, 2).tolist():
        first = int(matches[np.searchsorted(matches, low)])
        stop = int(matches[np.searchsorted(matches, high + period - 2, side="right") - 1]) + period + 1
        if stop - first >= MIN_REPEATS * period:
            inside[first] += 1
            inside[stop] -= 1
    return np.cumsum(inside[:-1]) > 0


def _cut(ids: IntArray, period: int, inside: BoolArray) -> Cycle | None:
    """Where repetitions begin: counted from an element that occurs once in each, so that an extra one shifts nothing."""
    first, last = int(np.argmax(inside)), len(ids) - int(np.argmax(inside[::-1]))
    pattern = ids[first : first + period]
    unique, counts = np.unique(pattern, return_counts=True)
    single = np.flatnonzero(np.isin(pattern, unique[counts == 1]))
    if len(single):
        seen = np.array([(ids[first:last] == pattern[i]).sum() for i in single])
        offset = int(single[np.argmin(np.abs(seen - np.median(seen)))])  # not one that also occurs elsewhere
        starts = np.flatnonzero(ids == pattern[offset]) - offset
        starts = starts[(starts >= first) & (starts < last)]
    else:
        starts = np.arange(first, last - period + 1, period)
    if len(starts) and last - starts[-1] < MIN_MATCH * period:
        starts = starts[:-1]
    if len(starts) < MIN_REPEATS:
        return None
    stop = min(int(starts[-1]) + period, len(ids))
    before = _unmatched(ids[: int(starts[0])][::-1], pattern[::-1])
    return Cycle(period, starts, stop, float(inside.mean()), before, _unmatched(ids[stop:], pattern))


def _unmatched(after: IntArray, pattern: IntArray) -> int:
    """Elements after a repetition, beyond those that begin a further one."""
    begun = min(len(after), len(pattern))
    differs = np.flatnonzero(after[:begun] != pattern[:begun])
    return len(after) - (int(differs[0]) if len(differs) else begun)
