"""The same collective on several ranks: matched by process group and sequence number, or else by order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.text import listed
from pyrometer.trace.jobs.job import Mismatch
from pyrometer.trace.jobs.semantics import POINT_TO_POINT, SAME_SIZE, ranks_of
from pyrometer.trace.jobs.summary import NULL, RankSummary
from pyrometer.trace.rows import IntArray

MAX_LISTED = 50
"""Mismatches that are listed; all are counted."""

JOINED = 64
"""Ranks whose calls are made one table as they come."""


class Group(NamedTuple):
    """A process group, as far as the traces tell it apart from others."""

    name: str | None
    ranks: str | None
    size: int | None


class Matched(NamedTuple):
    """All calls of a job, and what did not fit."""

    calls: (
        pl.DataFrame
    )  # one row per call and rank; `match` numbers the collective, `num_ranks` counts its calls
    groups: list[Group]  # `key` in `calls` is a row of it
    mismatches: list[Mismatch]
    num_mismatches: dict[str, int]  # by kind
    num_outside: int  # collectives outside of the time that all ranks of the group recorded


CALLS = {
    "rank": pl.Int64,
    "call": pl.Int64,
    "key": pl.Int64,
    "sequence": pl.Int64,
    "peer": pl.Int64,
    "bytes": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "exposed_ns": pl.Int64,
    "step": pl.Categorical,
    "name": pl.Categorical,
    "dtype": pl.Categorical,
}


def match_calls(summaries: Iterable[RankSummary]) -> Matched:
    """Match the collectives of all ranks; times become unix time as each rank's file tells it.

    Where the traces number the collectives of a group (`Seq`), the number decides. Elsewhere the order within step,
    group and name does; where ranks count differently many in a step, or of other sizes, the order among those of the
    same size. Sends match receives by their order between the two ranks.
    """
    groups: dict[Group, int] = {}
    calls = _all_calls(summaries, groups)
    if not calls.height:
        nothing = calls.with_columns(match=pl.lit(0), num_ranks=pl.lit(0), way=pl.lit(""))
        return Matched(nothing, [], [], {}, 0)
    is_p2p = pl.col("name").is_in(POINT_TO_POINT)
    paired = is_p2p & pl.col("peer").is_not_null()
    numbered = ~is_p2p & pl.col("sequence").is_not_null()
    ordered = ~is_p2p & pl.col("sequence").is_null()
    ways = {
        "number": (numbered, _by_number),
        "order": (ordered, _by_order),
        "pair": (paired, _by_pair),
        "alone": (is_p2p & ~paired, _alone),
    }
    matched, below = [], 0
    for way, (which, match) in ways.items():
        is_all = bool(calls.select(which.all()).item())
        part = match(calls if is_all else calls.filter(which))  # of a large job, one copy is much
        matched.append(
            part.select(
                *CALLS, pl.col("match").cast(pl.Int64) + below, pl.lit(way, pl.Categorical).alias("way")
            )
        )
        below += part["match"].n_unique() + 1
    del calls, part
    whole = pl.concat(matched).with_columns(num_ranks=pl.len().over("match").cast(pl.Int64))
    mismatches, counts, outside = _mismatches(whole, list(groups))
    return Matched(whole, list(groups), mismatches, counts, outside)


def _all_calls(summaries: Iterable[RankSummary], groups: dict[Group, int]) -> pl.DataFrame:
    """The calls of all ranks; tables of one rank each take more room than what is in them, so that many are joined early."""
    joined, single = [pl.DataFrame(schema=CALLS)], []
    for summary in summaries:
        single.append(_frame(summary, groups))
        if len(single) == JOINED:
            joined.append(pl.concat(single, rechunk=True))
            single.clear()
    return pl.concat([*joined, *single], rechunk=True)


def _frame(summary: RankSummary, groups: dict[Group, int]) -> pl.DataFrame:
    """The calls of one rank; its groups join `groups`."""
    calls = summary.calls.frame()
    if not calls.height:
        return pl.DataFrame(schema=CALLS)
    keys = [
        groups.setdefault(Group(x.group, x.group_ranks, x.group_size), len(groups)) for x in summary.labels
    ]
    label, step = calls["label"].cast(pl.UInt32), calls["step"].cast(pl.UInt32)
    whole = calls.with_row_index("call").with_columns(
        rank=pl.lit(summary.rank, pl.Int64),
        key=pl.Series(keys, dtype=pl.Int64).gather(label),
        name=pl.Series([x.name for x in summary.labels], dtype=pl.String).gather(label),
        dtype=pl.Series([x.dtype for x in summary.labels], dtype=pl.String).gather(label),
        step=pl.Series([x.name for x in summary.steps], dtype=pl.String).gather(step),
        end_ns=pl.col("start_ns") + pl.col("dur_ns") + summary.base_ns,
        start_ns=pl.col("start_ns") + summary.base_ns,
    )
    return whole.select(pl.col(name).cast(dtype) for name, dtype in CALLS.items())


def _in_classes(calls: pl.DataFrame, names: Sequence[str]) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """An order in which calls that agree in these columns stand together, each class in its own order; and where classes begin.

    Not by `over`, which holds a list for each class: of numbered collectives every call is one.
    """
    columns = [calls[name].to_physical().cast(pl.Int64).fill_null(NULL).to_numpy() for name in names]
    order = np.lexsort(columns)
    begins = np.ones(len(order), bool)
    begins[1:] = False
    for column in columns:
        ordered = column[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    return order, begins


def _turn(calls: pl.DataFrame, *within: str) -> pl.Series:
    """Place in the order of a rank's calls, within a class of them."""
    order, begins = _in_classes(calls, ("rank", "key", *within))
    places = np.arange(len(order))
    turn = np.empty(len(order), np.int64)
    turn[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return pl.Series(turn)


def _identify(calls: pl.DataFrame, *identity: str) -> pl.DataFrame:
    """Calls that agree in `identity` are one collective."""
    order, begins = _in_classes(calls, identity)
    match = np.empty(len(order), np.int64)
    match[order] = np.cumsum(begins)
    return calls.with_columns(match=pl.Series(match))


def _by_number(calls: pl.DataFrame) -> pl.DataFrame:
    return _identify(calls.with_columns(turn=_turn(calls, "sequence")), "key", "sequence", "turn")


def _by_order(calls: pl.DataFrame) -> pl.DataFrame:
    calls = _with_steps(calls)
    within = ("name", "at_step")
    calls = calls.with_columns(nth=_turn(calls, *within), n=pl.len().over("rank", "key", *within))
    same = pl.col("bytes").fill_null(-1).n_unique().over("key", *within, "nth") == 1
    calls = calls.with_columns(fits=same | ~pl.col("name").is_in(SAME_SIZE))
    agree = (pl.col("n").n_unique() == 1) & pl.col("fits").all()
    sized = calls.with_columns(
        agree=agree.over("key", *within), by_size=_turn(calls, *within, "bytes")
    ).with_columns(
        size=pl.when("agree").then(pl.lit(-1)).otherwise("bytes"),
        turn=pl.when("agree").then("nth").otherwise("by_size"),
    )
    return _identify(sized, "key", *within, "size", "turn")


def _by_pair(calls: pl.DataFrame) -> pl.DataFrame:
    sends = pl.col("name") == "send"
    calls = _with_steps(calls).with_columns(
        src=pl.when(sends).then("rank").otherwise("peer"), dst=pl.when(sends).then("peer").otherwise("rank")
    )
    turned = calls.with_columns(turn=_turn(calls, "src", "dst", "name", "at_step"))
    return _identify(turned, "key", "src", "dst", "at_step", "turn")


def _alone(calls: pl.DataFrame) -> pl.DataFrame:
    """Sends and receives whose other side the trace does not tell."""
    return _identify(calls.with_columns(turn=_turn(calls, "name")), "key", "rank", "name", "turn")


def _with_steps(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.with_columns(at_step=pl.col("step") if _share_steps(calls) else pl.lit(None, pl.Categorical))


def _share_steps(calls: pl.DataFrame) -> bool:
    """Whether the ranks recorded steps of the same names, at least in part."""
    names = calls.drop_nulls("step").select("rank", "step").unique()
    held = names.group_by("step").len()["len"].max()
    return isinstance(held, int) and held > 1


def _mismatches(calls: pl.DataFrame, groups: list[Group]) -> tuple[list[Mismatch], dict[str, int], int]:
    per = (
        calls.filter(pl.col("way") != "alone")
        .group_by("match", maintain_order=True)
        .agg(
            pl.col("key", "sequence", "step", "way").first(),
            names=pl.col("name").unique().sort(),
            sizes=pl.col("bytes").unique().sort(),
            ranks=pl.col("rank").unique().sort(),
            peer=pl.col("peer").first(),
        )
        .join(_members(calls, groups), on="key", how="left", maintain_order="left")
    )
    same = pl.col("names").list.first().is_in(SAME_SIZE) & (pl.col("way") != "pair")
    per = per.join(_windows(calls), on="key", how="left").with_columns(
        outside=(
            (pl.col("sequence") < pl.col("first_common")) | (pl.col("sequence") > pl.col("last_common"))
        ).fill_null(value=False)
        & (pl.col("way") == "number")
    )
    present = sorted(calls["rank"].unique().to_list())
    mismatches: list[Mismatch] = []
    lacking = per.filter(
        pl.when(pl.col("way") == "pair")
        .then((pl.col("ranks").list.len() < 2) & pl.col("peer").is_in(present))
        .otherwise(pl.col("ranks").list.len() < pl.col("members").list.len())
    )
    outside = lacking.filter("outside").height
    lacking = lacking.filter(~pl.col("outside"))
    differing = per.filter((pl.col("names").list.len() > 1) & (pl.col("way") != "pair"))
    unequal = per.filter(same & (pl.col("names").list.len() == 1) & (pl.col("sizes").list.len() > 1))
    for kind, rows in (("missing", lacking), ("names", differing), ("sizes", unequal)):
        mismatches += [
            _mismatch(kind, row, groups)
            for row in rows.head(MAX_LISTED - len(mismatches)).iter_rows(named=True)
        ]
    counts = {"missing": lacking.height, "names": differing.height, "sizes": unequal.height}
    return mismatches, {kind: n for kind, n in counts.items() if n}, outside


def _members(calls: pl.DataFrame, groups: list[Group]) -> pl.DataFrame:
    """Per group the ranks that should take part: those that the trace lists or shows, as far as their traces are here."""
    present = set(calls["rank"].unique().to_list())
    seen = calls.group_by("key").agg(pl.col("rank").unique())
    rows = [
        (key, sorted(set(ranks) | (set(ranks_of(groups[key].ranks) or ()) & present)))
        for key, ranks in seen.iter_rows()
    ]
    return pl.DataFrame(rows, schema={"key": pl.Int64, "members": pl.List(pl.Int64)}, orient="row")


def _windows(calls: pl.DataFrame) -> pl.DataFrame:
    """Per group the sequence numbers that every rank's recording spans."""
    spans = (
        calls.filter(pl.col("way") == "number")
        .group_by("key", "rank")
        .agg(first=pl.col("sequence").min(), last=pl.col("sequence").max())
    )
    return spans.group_by("key").agg(first_common=pl.col("first").max(), last_common=pl.col("last").min())


def _mismatch(kind: str, row: dict[str, Any], groups: list[Group]) -> Mismatch:
    group = groups[row["key"]].name
    names, ranks = _listed(row["names"]), [int(str(r)) for r in _listed(row["ranks"])]
    expected = [row["peer"]] if row["way"] == "pair" else _listed(row["members"])
    absent = [int(str(r)) for r in expected if r not in ranks]
    which = f"{'/'.join(map(str, names))} in group {group or '?'}"
    if row["sequence"] is not None:
        which += f", number {row['sequence']}"
    if row["step"]:
        which += f", {row['step']}"
    said = {
        "missing": f"{which}: ranks {listed(ranks)} have it, ranks {listed(absent)} do not",
        "names": f"{which}: ranks {listed(ranks)} called different collectives under the same number",
        "sizes": f"{which}: messages of {listed(_listed(row['sizes']))} bytes on ranks {listed(ranks)}",
    }
    return Mismatch(
        kind=kind,
        name="/".join(map(str, names)),
        group=group,
        sequence=None if row["sequence"] is None else int(str(row["sequence"])),
        step=None if row["step"] is None else str(row["step"]),
        ranks=absent if kind == "missing" else ranks,
        message=said[kind],
    )


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple, pl.Series)) else []
