"""What is wrong with the files of a job as a whole: one line each, for people, before any figure is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pyrometer.quantity import counted, format_seconds
from pyrometer.text import listed
from pyrometer.trace.jobs.held import Held
from pyrometer.trace.jobs.job import ClockOffset, RankFailure

FAR_APART_NS = 60_000_000_000
"""Clocks that are kept by anything differ by less than a minute; runs one after the other begin further apart."""

MOST_LISTED = 8


def find_doubts(
    ranks: Sequence[Held],
    failures: Sequence[RankFailure],
    missing: Sequence[int],
    clocks: Sequence[ClockOffset],
) -> list[str]:
    """What speaks against the files, the gravest first; of a rank alone nothing.

    Args:
        ranks: that are compared.
        failures: files that were left out.
        missing: ranks of the world size without a usable trace.
        clocks: of the same ranks.
    """
    several = len(ranks) > 1
    found = [
        *_of_different_jobs(ranks),
        *(_incomplete(ranks, missing) if several else ()),
        *_unusable([failure for failure in failures if failure.rank is None]),
        *_other_recordings([failure for failure in failures if failure.rank is not None]),
    ]
    if several:
        found += [*_far_apart(ranks, clocks), *_cut_off(ranks), *_uneven_steps(ranks), *_left_out(ranks)]
    return found


def _unusable(failures: Sequence[RankFailure]) -> Iterator[str]:
    for failure in failures[:MOST_LISTED]:
        yield f"left out {failure.path}: {failure.message.removeprefix(f'{failure.path}: ')}"
    if len(failures) > MOST_LISTED:
        yield f"{len(failures) - MOST_LISTED} more files were left out"


def _other_recordings(failures: Sequence[RankFailure]) -> Iterator[str]:
    """Files of ranks that others are of, too: one line for all."""
    if failures:
        first = failures[0]
        more = f", and {len(failures) - 1} more such" if len(failures) > 1 else ""
        yield f"left out {first.path}{more}: {first.message}"


def _of_different_jobs(ranks: Sequence[Held]) -> Iterator[str]:
    worlds = sorted({one.world_size for one in ranks if one.world_size})
    if len(worlds) > 1:
        sizes = " and of ".join(map(str, worlds))
        yield f"the files are of jobs of {sizes} ranks; pass the files of one job only"
        return
    beyond = [one.rank for one in ranks if worlds and one.rank >= worlds[0]]
    if beyond:
        yield f"rank {listed(beyond)} is beyond the {worlds[0]} that the files tell of; pass the files of one job only"


def _incomplete(ranks: Sequence[Held], missing: Sequence[int]) -> Iterator[str]:
    held = [one.rank for one in ranks]
    world = max((one.world_size for one in ranks if one.world_size), default=None)
    if world is None:
        between = sorted(set(range(max(held))) - set(held))
        gap = f"; of rank {listed(between)} there is no file" if between else ""
        yield f"the files do not say how many ranks the job has, so that missing ones cannot be told{gap}"
    elif missing:
        yield f"{len(held)} of {world} ranks: no trace of rank {listed(missing)}, which others may have waited for"


def _far_apart(ranks: Sequence[Held], clocks: Sequence[ClockOffset]) -> Iterator[str]:
    """Ranks whose clocks, or runs, are apart by more than any clock should be."""
    by_rank = {clock.rank: clock for clock in clocks}
    first = ranks[0]
    moved: dict[tuple[str, bool], list[int]] = {}
    for one in ranks[1:]:
        clock = by_rank[one.rank]
        apart = clock.applied_ns
        if not clock.num_collectives:  # nothing ties them: the files' own times decide
            apart = one.base_ns + one.start_ns - first.base_ns - first.start_ns
        if abs(apart) > FAR_APART_NS:
            way = "ahead of" if apart > 0 else "behind"
            said = f"{format_seconds(abs(apart) / 1e9)} {way}"
            moved.setdefault((said, bool(clock.num_collectives)), []).append(one.rank)
    for (said, is_tied), those in list(moved.items())[:MOST_LISTED]:
        done = "aligned by their collectives" if is_tied else "no collective ties them, so that it stays"
        yield (
            f"the clock of rank {listed(those)} is {said} that of rank {first.rank}; {done}; "
            "files of two runs look like this, too"
        )


def _uneven_steps(ranks: Sequence[Held]) -> Iterator[str]:
    counts = {held.rank: held.row.num_steps for held in ranks if not held.is_truncated}
    if not counts:
        return
    usual, _ = Counter(counts.values()).most_common(1)[0]
    odd = {rank: number for rank, number in counts.items() if number != usual}
    if odd:
        told = listed([f"{number} on rank {rank}" for rank, number in _sorted(odd)])
        yield f"ranks recorded different numbers of steps: {usual} on most, {told}; totals are of each rank's own steps"


def _cut_off(ranks: Sequence[Held]) -> Iterator[str]:
    cut = [held.rank for held in ranks if held.is_truncated]
    if cut:
        files = counted(len(cut), "file")
        yield f"{files} cut off: that of rank {listed(cut)}; what came after is missing, and looks like no work"
    lost = {
        held.rank: held.row.num_lost_events
        for held in ranks
        if held.row.num_lost_events and not held.is_truncated
    }
    if lost:
        told = listed([f"{number} of rank {rank}" for rank, number in _sorted(lost)])
        yield f"events could not be read: {told}"


def _left_out(ranks: Sequence[Held]) -> Iterator[str]:
    left = sum(held.num_calls_left_out for held in ranks)
    if left:
        most = max(held.num_calls for held in ranks)
        yield f"who waits for whom is told by the first {most:,} collectives of each rank; {left:,} more are left out"


def _sorted(by_rank: Mapping[int, int]) -> list[tuple[int, int]]:
    return sorted(by_rank.items())
