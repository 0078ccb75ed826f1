"""The facts of a collective call: name, group, message and caller, from whichever event tells them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pyrometer.trace.jobs.semantics import (
    POINT_TO_POINT,
    canonical,
    element_bytes,
    message_elements,
    ranks_of,
)
from pyrometer.trace.rows import pick, row_numbers
from pyrometer.trace.schema import Column, Table
from pyrometer.trace.trace import RankTrace

CALLS: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`: the first kernel, or what ran or called it on the host"),
        "name": Column(pl.String, "all_reduce, all_gather, …; see `semantics.NAMES`"),
        "group": Column(pl.String, "process group, null where the trace does not say"),
        "group_ranks": Column(pl.String, "its ranks, as text"),
        "group_size": Column(pl.Int64, "number of its ranks"),
        "sequence": Column(pl.Int64, "`Seq`: number of the collective in its group"),
        "peer": Column(pl.Int64, "the other rank, of a send or receive"),
        "dtype": Column(pl.String, ""),
        "bytes": Column(pl.Int64, "size of the message, as nccl-tests counts it"),
        "in_bytes": Column(pl.Int64, "what this rank puts in"),
        "out_bytes": Column(pl.Int64, "what this rank gets"),
        "device": Column(pl.Int32, "device that ran it; null when it ran on the host, or did not run"),
        "start_ns": Column(
            pl.Int64, "start on the device or backend thread; null when the trace holds no run"
        ),
        "end_ns": Column(pl.Int64, "end"),
        "dur_ns": Column(pl.Int64, "duration"),
        "exposed_ns": Column(pl.Int64, "part of it in which nothing computes on the same device"),
        "num_kernels": Column(pl.Int64, "kernels of the call"),
        "launch": Column(pl.Int64, "row of `events`: the outermost operator of the call on the host"),
        "launch_ns": Column(pl.Int64, "its start"),
        "step": Column(pl.Int32, "row of `steps`"),
        "is_async": Column(
            pl.Boolean, "whether the caller goes on at once; null where the trace does not say"
        ),
    }
)
"""Columns of `collective_calls`. A call that the trace shows on the host only has no start, end and duration."""


def describe(trace: RankTrace, units: pl.DataFrame) -> pl.DataFrame:
    """Name, group, size, launch and step of each call."""
    rows = trace.tables["collectives"]
    units = _with_arguments(units, rows)
    events = trace.events
    ops = trace.tables["ops"].select(
        pl.col("event").cast(pl.Int64).alias("at"), "input_dims", "input_types", "concrete_inputs"
    )
    units = units.join(ops.select("at", "input_dims", "input_types"), on="at", how="left")
    units = units.join(ops.select(pl.col("at").alias("op"), "concrete_inputs"), on="op", how="left")
    names = events["name"]
    first = pl.Series(
        np.where(units["kernel"].fill_null(-1) >= 0, units["kernel"].fill_null(-1), units["at"])
    )
    launch = units["launch"].to_numpy()
    starts, steps = events["start_ns"], events["step"]
    launched = pl.Series(launch).set(pl.Series(launch < 0), None)
    facts = _facts(
        trace, units, [pick(names, row_numbers(rows)) for rows in (first, units["at"], units["op"])]
    )
    return (
        pl.concat([units.drop(set(FACTS) & set(units.columns)), facts], how="horizontal")
        .with_columns(
            event=first,
            dur_ns=pl.col("end_ns") - pl.col("start_ns"),
            launch=launched,
            launch_ns=starts.gather(launched.cast(pl.UInt32)),
            step=steps.gather(launched.cast(pl.UInt32)).zip_with(launched.is_not_null(), steps.gather(first)),
        )
        .filter(pl.col("name").is_not_null())
    )


TOLD = ("name", "group", "group_ranks", "group_size", "peer", "dtype")
FACTS = {name: CALLS[name].dtype for name in (*TOLD, "bytes", "in_bytes", "out_bytes", "is_async")}
"""What `_fill` gives, in its order."""

READ = (
    *("collective", "in_elements", "out_elements", "dtype", "input_dims", "input_types", "concrete_inputs"),
    *("is_async", "group_name", "group_ranks", "group_size", "destination", "source"),
)
"""What it reads of a call, beside the names of its events."""


def _with_arguments(units: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Arguments from the kernel itself, else from the `record_param_comms` above the call."""
    keyed = rows.with_columns(pl.col("event").cast(pl.Int64))
    columns = [name for name in rows.columns if name != "event"]
    joined = units.join(keyed, left_on="kernel", right_on="event", how="left", maintain_order="left").join(
        keyed, left_on="args", right_on="event", how="left", suffix="_host", maintain_order="left"
    )
    return joined.with_columns(pl.coalesce(name, f"{name}_host").alias(name) for name in columns).drop(
        [f"{name}_host" for name in columns]
    )


def _facts(trace: RankTrace, units: pl.DataFrame, labels: Sequence[pl.Series]) -> pl.DataFrame:
    """The facts of each call; those that are told the same are read once, as a step calls what the one before it called."""
    named = {f"label_{i}": label for i, label in enumerate(labels)}
    told = units.select(READ).with_columns(**named)
    different = told.unique(maintain_order=True)
    filled = [_fill(row, trace, *(row[name] for name in named)) for row in different.iter_rows(named=True)]
    facts = pl.DataFrame(filled, schema=FACTS, orient="row")
    place = told.join(
        different.with_row_index("place"),
        on=told.columns,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return facts[place["place"]]


def _fill(
    row: Mapping[str, Any], trace: RankTrace, label: str, at: str | None, op: str | None
) -> tuple[Any, ...]:
    """The facts of one call, in the order of `FACTS`; named by its event, what called it and the operator."""
    collective = row["collective"] or at
    name = canonical(collective) if collective else canonical(label)
    if name in {"other", None} and op is not None:
        name = canonical(op)
    group, ranks, size = _group(row, trace)
    num_in, num_out, dtype = row["in_elements"], row["out_elements"], row["dtype"]
    if num_in is None and row["input_dims"]:
        num_in, dtype = _elements(row["input_dims"], row["input_types"])
    each = element_bytes(dtype)
    total = message_elements(name or "other", num_in, num_out, size)
    return (
        name,
        group,
        ranks,
        size,
        _peer(row, name, ranks),
        dtype.lower().removeprefix("c10::") if dtype else None,
        _times(total, each),
        _times(num_in, each),
        _times(num_out, each),
        _is_async(row["concrete_inputs"]) if row["is_async"] is None else row["is_async"],
    )


def _group(row: Mapping[str, Any], trace: RankTrace) -> tuple[str | None, str | None, int | None]:
    """Name, ranks and size of the group, completed from the head of the file; a job of one group has no other."""
    known = trace.info.groups
    name, ranks, size = row["group_name"], row["group_ranks"], row["group_size"]
    if name is None and len(known) == 1:
        name = known[0].name
    held = next((group for group in known if group.name == name), None)
    if held is not None:
        ranks = ranks or (str(held.ranks) if held.ranks else None)
        size = size or held.size or len(held.ranks) or None
    if size is None and not known:
        size = trace.info.world_size
    return name, ranks, size


@lru_cache(maxsize=4096)
def _elements(dims: str, types: str | None) -> tuple[int | None, str | None]:
    """Elements and dtype of the first argument, from its shape as JSON text; a list of tensors counts together."""
    try:
        shape = msgspec.json.decode(dims)[0]
        listed = msgspec.json.decode(types or "[]")
        if not shape:
            return None, None
        tensors = shape if isinstance(shape[0], list) else [shape]
        number = sum(math.prod(int(size) for size in tensor) for tensor in tensors)
    except (msgspec.DecodeError, IndexError, TypeError, KeyError, ValueError):
        return None, None  # the profiler wrote no shape, or none that can be read
    return number, listed[0] if listed and isinstance(listed[0], str) else None


def _is_async(concrete: str | None) -> bool | None:
    """`asyncOp` stands before the time-out among the arguments of a c10d operator."""
    return {"True": True, "False": False}.get(_argument(concrete, -2))


@lru_cache(maxsize=4096)
def _argument(concrete: str | None, place: int) -> str:
    """One scalar argument of an operator, as text; empty where the profiler wrote none."""
    try:
        arguments = msgspec.json.decode(concrete or "[]")
        return str(arguments[place])
    except (msgspec.DecodeError, IndexError, TypeError, KeyError):
        return ""


def _peer(row: Mapping[str, Any], name: str | None, ranks: str | None) -> int | None:
    """The other rank of a send or receive; the trace counts within the group."""
    if name not in POINT_TO_POINT:
        return None
    peer: int | None = row["destination"] if name == "send" else row["source"]
    if peer is None:
        said = _argument(row["concrete_inputs"], 2)
        peer = int(said) if said.isdigit() else None
    members = ranks_of(ranks)
    return members[peer] if peer is not None and members and 0 <= peer < len(members) else peer


def _times(number: int | None, each: int | None) -> int | None:
    return None if number is None or each is None else number * each
