"""Summaries of ranks to one `Job`: needs the summaries alone, so its memory does not depend on how many events there were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace.jobs.claims import settle
from pyrometer.trace.jobs.clocks import align, estimate_clocks
from pyrometer.trace.jobs.doubts import find_doubts
from pyrometer.trace.jobs.executor import Executor, Outcome, executor_for
from pyrometer.trace.jobs.held import Held, Summaries
from pyrometer.trace.jobs.job import ClockOffset, Job, Prefetch, RankFailure, RankRow
from pyrometer.trace.jobs.kept import Kept, kept_folder
from pyrometer.trace.jobs.lateness import between_equals, chance_of_work, map_lags, with_lag
from pyrometer.trace.jobs.matching import Matched, match_calls
from pyrometer.trace.jobs.pipeline import find_pipelines
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.jobs.semantics import POINT_TO_POINT
from pyrometer.trace.jobs.stragglers import COMPARED, find_stragglers
from pyrometer.trace.jobs.summary import RankSummary, SummariesOf, first_calls
from pyrometer.trace.jobs.waits import job_collectives, split_apart, with_waits

MERGED_CALLS = 500_000
"""Collectives of all ranks together that are compared, the first ones of each: what bounds the memory of merging."""

NO_LAG = ("sequence", "peer", "bytes", "end_ns", "dur_ns", "name", "dtype", "way", "num_ranks", "latency_ns")
"""What whose fault it is does not depend on: columns that are not sorted with the others."""


def read_job(
    paths: Sequence[str | Path], *, workers: int | None = None, executor: Executor | None = None
) -> Job:
    """Read the traces of all ranks of a job, one task per file, and compare the ranks.

    A file that cannot be used is named in the result and does not stop the others.

    Args:
        paths: one file per rank.
        workers: processes; by default as many as cores and files allow, and none beside this one for small files; 1 for none.
        executor: where to reduce the files instead.

    Raises:
        InputError: there are no paths, or none of the files could be used.
    """
    listed = [Path(path) for path in paths]
    if not listed:
        raise InputError("no trace files were given; pass one per rank, such as rank*.json.gz")
    job = merge_ranks(summarise(listed, executor or executor_for(listed, workers)))
    if not job.ranks:
        first = job.failures[0]
        raise InputError(f"none of the {len(listed)} files could be used; {first.path}: {first.message}")
    return job


def summarise(
    paths: Sequence[Path], executor: Executor, kept: Kept[RankSummary] | None = None
) -> Iterator[Outcome]:
    """The summary of each file, as small as comparing so many asks for; what is kept from before is not read again."""
    most = MERGED_CALLS // max(len(paths), 1)
    for outcome in (kept or Kept(RankSummary, kept_folder())).reduced(paths, executor, reduce_rank):
        yield outcome if isinstance(outcome, RankFailure) else first_calls(outcome, most)


def merge_ranks(outcomes: Iterable[Outcome]) -> Job:
    """Compare ranks, from their summaries in any order."""
    with Summaries() as summaries:
        ranks, failures = _sort_out(outcomes, summaries)
        return _compare(ranks, failures, summaries)


def _compare(ranks: Sequence[Held], failures: Sequence[RankFailure], summaries: Summaries) -> Job:
    matched = match_calls(summaries.of(held) for held in ranks)
    clocks = estimate_clocks(matched.calls, {held.rank: held.host for held in ranks})
    residual = _noise(clocks)
    waits, apart = split_apart(with_waits(align(matched.calls, clocks)), residual or 0)
    between = waits.select("rank", "wait_ns").filter(~waits["name"].is_in(POINT_TO_POINT))
    num_apart = apart["match"].n_unique()
    world_size = max((held.world_size for held in ranks if held.world_size), default=None)
    present = {held.rank for held in ranks}
    missing = [rank for rank in range(world_size or 0) if rank not in present]
    compute = [held.row.compute_ns for held in ranks]
    by_rank = {held.rank: held for held in ranks}

    def summaries_of(wanted: Iterable[int]) -> Iterator[RankSummary]:
        return (summaries.of(by_rank[rank]) for rank in sorted(wanted) if rank in by_rank)

    pipelines = find_pipelines(
        matched.calls, waits, summaries_of, {clock.rank: clock.applied_ns for clock in clocks}
    )
    job = Job(
        world_size=world_size,
        ranks=_rows(ranks, between),
        warnings=find_doubts(ranks, failures, missing, clocks),
        missing_ranks=missing,
        failures=list(failures),
        collectives=job_collectives(waits, matched.groups),
        wait_ns=int(between["wait_ns"].sum()),
        compute_imbalance=max(compute) * len(compute) / sum(compute) if sum(compute) else None,
        compute_chance=_chance_of_work(ranks, summaries_of),
        clocks=clocks,
        clock_residual_ns=residual,
        num_matched=waits["match"].n_unique(),
        num_outside=matched.num_outside,
        num_mismatches={**matched.num_mismatches, **({"apart": num_apart} if num_apart else {})},
        mismatches=matched.mismatches,
        num_calls_left_out=sum(held.num_calls_left_out for held in ranks),
        pipelines=pipelines,
        prefetch=_prefetch(matched.calls, ranks),
        notes=_notes(ranks, matched, waits, clocks),
    )
    # The largest tables come last, when there is room for them.
    equals = between_equals(waits, [pipeline.ranks for pipeline in pipelines]).drop(NO_LAG)
    del matched, waits, apart, between
    equals = with_lag(equals)
    stragglers = find_stragglers(equals, summaries_of, len(ranks), residual or 0)
    lag_map = map_lags(equals, [straggler.rank for straggler in stragglers])
    return msgspec.structs.replace(job, stragglers=stragglers, lag_map=lag_map)


def _chance_of_work(ranks: Sequence[Held], summaries_of: SummariesOf) -> float | None:
    """Of the rank that computes most, beside some of the others."""
    most = max(ranks, key=lambda held: held.row.compute_ns, default=None)
    if most is None:
        return None
    beside = [held.rank for held in ranks][:: -(-len(ranks) // COMPARED)]
    return chance_of_work(summaries_of({most.rank, *beside}), most.rank, len(ranks))


def _noise(clocks: Sequence[ClockOffset]) -> int | None:
    """How far the clocks of the ranks are uncertain, ns."""
    return max((clock.residual_ns for clock in clocks if clock.residual_ns is not None), default=None)


def _sort_out(outcomes: Iterable[Outcome], summaries: Summaries) -> tuple[list[Held], list[RankFailure]]:
    """Ranks in order; of several files that claim the same one those stay that belong together, the others are named."""
    failures, claims = [], dict[int, list[Held]]()
    for one in outcomes:
        if isinstance(one, RankFailure):
            failures.append(one)
        else:
            claims.setdefault(one.rank, []).append(summaries.put(one))
    ranks, others = settle(claims)
    return ranks, sorted([*failures, *others], key=lambda failure: failure.path)


def _rows(ranks: Sequence[Held], waits: pl.DataFrame) -> list[RankRow]:
    waited = dict(waits.group_by("rank").agg(pl.col("wait_ns").sum()).iter_rows())
    return [msgspec.structs.replace(held.row, waited_ns=waited.get(held.rank, 0)) for held in ranks]


def _prefetch(calls: pl.DataFrame, ranks: Sequence[Held]) -> list[Prefetch]:
    sharded = [held.rank for held in ranks if held.shards_parameters]
    gathers = calls.filter(pl.col("rank").is_in(sharded) & (pl.col("name") == "all_gather")).drop_nulls(
        "dur_ns"
    )
    exposed = pl.col("exposed_ns")
    rows = gathers.group_by("rank").agg(
        num_gathers=pl.len(),
        gather_ns=pl.col("dur_ns").sum(),
        exposed_ns=exposed.sum(),
        num_exposed=(exposed * 2 > pl.col("dur_ns")).sum(),
    )
    return [
        Prefetch(
            rank=row["rank"],
            num_gathers=row["num_gathers"],
            gather_ns=row["gather_ns"],
            efficiency=1 - row["exposed_ns"] / row["gather_ns"] if row["gather_ns"] else 1.0,
            num_exposed=row["num_exposed"],
        )
        for row in rows.sort("rank").iter_rows(named=True)
    ]


def _notes(
    ranks: Sequence[Held], matched: Matched, waits: pl.DataFrame, clocks: Sequence[ClockOffset]
) -> list[str]:
    notes = []
    calls = matched.calls
    unnumbered = calls.filter(pl.col("sequence").is_null() & ~pl.col("name").is_in(POINT_TO_POINT)).height
    if len(ranks) > 1 and unnumbered:
        notes.append(f"{unnumbered} collectives carry no number and were matched by their order")
    alone = calls.filter(pl.col("name").is_in(POINT_TO_POINT) & pl.col("peer").is_null()).height
    if alone:
        notes.append(f"{alone} sends and receives do not say with whom; they were not matched")
    untimed = calls["dur_ns"].null_count()
    if untimed:
        notes.append(f"{untimed} collectives were seen on the host only, without their run")
    guessed = [clock.rank for clock in clocks if not clock.num_collectives]
    if len(ranks) > 1 and guessed:
        notes.append(
            f"clocks of ranks {', '.join(map(str, guessed[:8]))} rest on the files' base times alone"
        )
    drifting = [clock for clock in clocks if clock.drift_ppm is not None and abs(clock.drift_ppm) > 5]
    if drifting:
        notes.append(
            f"clocks drift by up to {max(abs(offset.drift_ppm or 0) for offset in drifting):.1f} ppm; not corrected"
        )
    if len(ranks) > 1 and not waits.height:
        notes.append("no collective was recorded by two ranks: ranks cannot be compared in time")
    return notes
