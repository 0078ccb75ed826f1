"""What is wrong with the files of a job as a whole: one line each, for people, before any figure is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pyrometer.quantity import counted, format_seconds
from pyrometer.text import listed
from pyrometer.trace.jobs.job import ClockOffset, RankFailure
from pyrometer.trace.jobs.summary import RankSummary

FAR_APART_NS = 60_000_000_000
"""Clocks that are kept by anything differ by less than a minute; runs one after the other begin further apart."""

MOST_LISTED = 8


def find_doubts(
    summaries: Sequence[RankSummary],
    failures: Sequence[RankFailure],
    missing: Sequence[int],
    clocks: Sequence[ClockOffset],
) -> list[str]:
    """What speaks against the files, the gravest first; of a rank alone nothing.

    Args:
        summaries: of the ranks that are compared.
        failures: files that were left out.
        missing: ranks of the world size without a usable trace.
        clocks: of the same ranks.
    """
    found = [*_of_different_jobs(summaries)]
    found += [f"left out {failure.path}: {failure.message}" for failure in failures[:MOST_LISTED]]
    if len(failures) > MOST_LISTED:
        found.append(f"{len(failures) - MOST_LISTED} more files were left out")
    if len(summaries) < 2:
        return found
    return [
        *found,
        *_incomplete(summaries, missing),
        *_far_apart(summaries, clocks),
        *_uneven_steps(summaries),
        *_cut_off(summaries),
        *_left_out(summaries),
    ]


def _of_different_jobs(summaries: Sequence[RankSummary]) -> Iterator[str]:
    worlds = sorted({summary.world_size for summary in summaries if summary.world_size})
    if len(worlds) > 1:
        sizes = " and of ".join(map(str, worlds))
        yield f"the files are of jobs of {sizes} ranks; pass the files of one job only"
        return
    beyond = [summary.rank for summary in summaries if worlds and summary.rank >= worlds[0]]
    if beyond:
        yield f"rank {listed(beyond)} is beyond the {worlds[0]} that the files tell of; pass the files of one job only"


def _incomplete(summaries: Sequence[RankSummary], missing: Sequence[int]) -> Iterator[str]:
    held = [summary.rank for summary in summaries]
    world = max((summary.world_size for summary in summaries if summary.world_size), default=None)
    if world is None:
        between = sorted(set(range(max(held))) - set(held))
        gap = f"; of rank {listed(between)} there is no file" if between else ""
        yield f"the files do not say how many ranks the job has, so that missing ones cannot be told{gap}"
    elif missing:
        yield f"{len(held)} of {world} ranks: no trace of rank {listed(missing)}, which others may have waited for"


def _far_apart(summaries: Sequence[RankSummary], clocks: Sequence[ClockOffset]) -> Iterator[str]:
    """Ranks whose clocks, or runs, are apart by more than any clock should be."""
    by_rank = {clock.rank: clock for clock in clocks}
    first = summaries[0]
    moved: dict[tuple[str, bool], list[int]] = {}
    for summary in summaries[1:]:
        clock = by_rank[summary.rank]
        apart = clock.applied_ns
        if not clock.num_collectives:  # nothing ties them: the files' own times decide
            apart = summary.base_ns + summary.start_ns - first.base_ns - first.start_ns
        if abs(apart) > FAR_APART_NS:
            way = "ahead of" if apart > 0 else "behind"
            said = f"{format_seconds(abs(apart) / 1e9)} {way}"
            moved.setdefault((said, bool(clock.num_collectives)), []).append(summary.rank)
    for (said, is_tied), ranks in list(moved.items())[:MOST_LISTED]:
        done = "aligned by their collectives" if is_tied else "no collective ties them, so that it stays"
        yield (
            f"the clock of rank {listed(ranks)} is {said} that of rank {first.rank}; {done}; "
            "files of two runs look like this, too"
        )


def _uneven_steps(summaries: Sequence[RankSummary]) -> Iterator[str]:
    counts = {summary.rank: len(summary.steps) for summary in summaries}
    usual, _ = Counter(counts.values()).most_common(1)[0]
    odd = {rank: number for rank, number in counts.items() if number != usual}
    if odd:
        told = listed([f"{number} on rank {rank}" for rank, number in _sorted(odd)])
        yield f"ranks recorded different numbers of steps: {usual} on most, {told}; totals are of each rank's own steps"


def _cut_off(summaries: Sequence[RankSummary]) -> Iterator[str]:
    cut = [summary.rank for summary in summaries if summary.is_truncated]
    if cut:
        files = counted(len(cut), "file")
        yield f"{files} cut off: that of rank {listed(cut)}; what came after is missing, and looks like no work"
    lost = {s.rank: s.num_lost_events for s in summaries if s.num_lost_events and not s.is_truncated}
    if lost:
        told = listed([f"{number} of rank {rank}" for rank, number in _sorted(lost)])
        yield f"events could not be read: {told}"


def _left_out(summaries: Sequence[RankSummary]) -> Iterator[str]:
    left = sum(summary.num_calls_left_out for summary in summaries)
    if left:
        most = max(summary.calls.num_rows for summary in summaries)
        yield f"who waits for whom is told by the first {most:,} collectives of each rank; {left:,} more are left out"


def _sorted(by_rank: Mapping[int, int]) -> list[tuple[int, int]]:
    return sorted(by_rank.items())
