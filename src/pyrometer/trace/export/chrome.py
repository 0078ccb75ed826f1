"""The trace as JSON for Perfetto and chrome://tracing, with what was found in it on tracks of its own."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
import polars as pl

from pyrometer.record import Record
from pyrometer.trace.export.counter_tracks import counter_series
from pyrometer.trace.export.head import head_of
from pyrometer.trace.export.highlights import Highlight, critical_slices, highlight_slices, on_lanes
from pyrometer.trace.export.json_text import Columns, argument_text, lines, microseconds, quoted
from pyrometer.trace.export.lanes import find_lanes
from pyrometer.trace.export.whole import exporting
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.trace import RankTrace, Trace

PROCESS = "pyrometer"
"""Name of the process, and category, of everything that is added."""

MOMENTS = (Kind.MEMORY, Kind.INSTANT)
COMPRESSION = 5
"""Of gzip: at 9 a file takes three times as long and is 3 % smaller."""


class Window(Record, frozen=True, kw_only=True):
    """What to export: all that overlaps `[start_ns, end_ns)`; events stay whole."""

    start_ns: int = -(2**62)
    end_ns: int = 2**62


def export_chrome(
    trace: RankTrace | Trace,
    path: Path,
    *,
    counters: bool = True,
    critical_path: bool = True,
    highlights: Sequence[Highlight] = (),
    window: Window | None = None,
) -> None:
    """Write the trace as Chrome JSON, compressed where the name ends in `.gz`.

    All events are written with their arguments, flows and names of tracks, times to the nanosecond. Events that overlap
    without nesting move to a further lane of their track, since viewers drop them. Several ranks become processes of
    their own on the clock of the earliest; one rank can be read back as it was, but for host events that moved to a lane: there
    they are on a track of their own.

    Args:
        trace: one rank or several.
        path: where to; written beside and then renamed, so that no half of a file is left.
        counters: add queues, memory, bandwidth and whether devices are busy.
        critical_path: add the critical path, where it can be found.
        highlights: what to point at; of the first rank.
        window: only a part of the time.

    Raises:
        InputError: the file cannot be written.
    """
    ranks = trace.ranks if isinstance(trace, Trace) else (trace,)
    with exporting(path) as beside, _opened(beside, compressed=path.suffix == ".gz") as out:
        _write(out, ranks, highlights, window or Window(), counters=counters, critical_path=critical_path)


def _opened(path: Path, *, compressed: bool) -> IO[str]:
    if compressed:
        return gzip.open(path, "wt", encoding="utf-8", compresslevel=COMPRESSION)
    return path.open("w", encoding="utf-8")


def _write(
    out: IO[str],
    ranks: Sequence[RankTrace],
    highlights: Sequence[Highlight],
    window: Window,
    *,
    counters: bool,
    critical_path: bool,
) -> None:
    head = head_of(ranks[0].info) if ranks else {}
    out.write(msgspec.json.encode(head).decode()[:-1] + (", " if head else "") + '"traceEvents": [\n')
    separator = ""
    for rank in ranks:
        place = _Place(rank, ranks)
        marks = [highlight_slices(highlights if rank is ranks[0] else ())]
        marks += [critical_slices(rank)] if critical_path else []
        parts = [_events(place, window), _flows(place, window), _own_counters(place, window)]
        parts += [_highlights(place, pl.concat(marks), window)]
        parts += [_counters(place, window)] if counters else []
        for part in parts:
            for chunk in part:
                if chunk:
                    out.write(separator + ",\n".join(chunk))
                    separator = ",\n"
    out.write("\n]}\n")


class _Place:
    """Where a rank's tracks lie in the file: one rank keeps its ids and its clock."""

    def __init__(self, trace: RankTrace, ranks: Sequence[RankTrace]) -> None:
        self.trace = trace
        self.alone = len(ranks) == 1
        self.shift_ns = 0 if self.alone else trace.info.base_ns - min(rank.info.base_ns for rank in ranks)
        self.flow_shift = 0 if self.alone else ranks.index(trace) << 40
        self.process = PROCESS if self.alone else f"{PROCESS}, rank {trace.rank}"

    def pid(self, pid: str) -> str:
        """As JSON: a number again where it was one."""
        return _id(pid) if self.alone else f'"rank {self.trace.rank}: {_id(pid).strip(chr(34))}"'

    def keys(self) -> pl.DataFrame:
        """`track, pid, tid` as JSON."""
        tracks = self.trace.tracks
        return tracks.select(
            "track",
            pl.Series("pid", [self.pid(pid) for pid in tracks["pid"].to_list()], dtype=pl.String),
            pl.Series("tid", [_id(tid) for tid in tracks["tid"].to_list()], dtype=pl.String),
        )

    def time(self, rows: pl.DataFrame, column: str) -> pl.Series:
        """Moments as JSON."""
        shifted = rows.select(pl.col(column) + self.shift_ns)
        return shifted.select(microseconds(column)).to_series()


def _id(text: str) -> str:
    """A pid or tid as JSON.

    >>> _id("7"), _id("stream 7"), _id("007")
    ('7', '"stream 7"', '"007"')
    """
    is_number = text.lstrip("-").isdecimal() and str(int(text)) == text
    return text if is_number else msgspec.json.encode(text).decode()


def _events(place: _Place, window: Window) -> Iterator[list[str]]:
    trace = place.trace
    events = trace.tables["events"].with_columns(args=argument_text(trace))
    moment = is_kind(*MOMENTS)
    lasting = events.select(~moment).to_series().to_numpy()
    lane = np.zeros(events.height, np.int64)
    track, start, end = (events[name].to_numpy()[lasting] for name in ("track", "start_ns", "end_ns"))
    lane[lasting] = find_lanes(track.astype(np.int64), start, end)
    events = events.with_columns(lane=pl.Series(lane))
    extra = events.filter(pl.col("lane") > 0).select("track", "lane").unique(maintain_order=True)
    yield _names(place, extra)
    table = events.filter((pl.col("end_ns") >= window.start_ns) & (pl.col("start_ns") < window.end_ns))
    keyed = table.join(place.keys(), on="track", how="left", maintain_order="left").with_columns(
        tid=pl.when(pl.col("lane") > 0)
        .then(pl.lit('"') + pl.col("tid").str.strip_chars('"') + pl.format(' lane {}"', "lane"))
        .otherwise("tid"),
        is_moment=moment,
    )
    for (is_moment,), rows in keyed.group_by("is_moment", maintain_order=True):
        members: Columns = {
            "ph": '"i"' if is_moment else '"X"',
            "cat": quoted(rows["cat"]),
            "name": quoted(rows["name"]),
            "pid": rows["pid"],
            "tid": rows["tid"],
            "ts": place.time(rows, "start_ns"),
        }
        last: Columns = (
            {"s": '"t"'} if is_moment else {"dur": rows.select(microseconds("dur_ns")).to_series()}
        )
        yield lines({**members, **last, "args": rows["args"]}, rows.height)


def _names(place: _Place, extra: pl.DataFrame) -> list[str]:
    """Metadata events: names of processes and threads, and of the lanes that were added."""
    names = []
    tracks = {row["track"]: row for row in place.trace.tracks.iter_rows(named=True)}
    processes = {row["pid"]: row["process_name"] for row in tracks.values() if row["process_name"]}
    names += [_meta("process_name", place.pid(pid), None, name) for pid, name in processes.items()]
    for row in tracks.values():
        if row["thread_name"]:
            names.append(_meta("thread_name", place.pid(row["pid"]), _id(row["tid"]), row["thread_name"]))
    for track, lane in extra.iter_rows():
        row = tracks[track]
        tid = f'"{_id(row["tid"]).strip(chr(34))} lane {lane}"'
        label = f"{row['thread_name'] or row['tid']}, overlapping {lane}"
        names.append(_meta("thread_name", place.pid(row["pid"]), tid, label))
    return names


def _meta(what: str, pid: str, tid: str | None, name: str) -> str:
    thread = "" if tid is None else f',"tid":{tid}'
    return f'{{"ph":"M","name":"{what}","pid":{pid}{thread},"ts":0,"args":{{"name":{msgspec.json.encode(name).decode()}}}}}'


def _flows(place: _Place, window: Window) -> Iterator[list[str]]:
    flows = place.trace.tables["flows"].filter(
        pl.col("ts_ns").is_between(window.start_ns, window.end_ns, closed="left")
    )
    rows = flows.join(place.keys(), on="track", how="left", maintain_order="left")
    name = quoted(rows["name"])
    members: Columns = {
        "ph": quoted(rows["ph"]),
        "cat": name,
        "name": name,
        "id": (rows["id"] + place.flow_shift).cast(pl.String),
        "pid": rows["pid"],
        "tid": rows["tid"],
        "ts": place.time(rows, "ts_ns"),
        "bp": rows.select(pl.when(pl.col("ph") == "f").then(pl.lit('"e"'))).to_series(),
    }
    yield lines(members, rows.height)


def _own_counters(place: _Place, window: Window) -> Iterator[list[str]]:
    """Counters that the file itself held."""
    held = place.trace.tables["counters"].filter(
        pl.col("ts_ns").is_between(window.start_ns, window.end_ns, closed="left")
    )
    rows = held.join(place.keys(), on="track", how="left", maintain_order="left")
    members: Columns = {
        "ph": '"C"',
        "name": quoted(rows["name"]),
        "pid": rows["pid"],
        "tid": rows["tid"],
        "ts": place.time(rows, "ts_ns"),
        "args": rows["values"],
    }
    yield lines(members, rows.height)


def _highlights(place: _Place, slices: pl.DataFrame, window: Window) -> Iterator[list[str]]:
    table = slices.filter((pl.col("end_ns") >= window.start_ns) & (pl.col("start_ns") < window.end_ns))
    rows = on_lanes(table).with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns"))
    members: Columns = {
        "ph": '"X"',
        "cat": f'"{PROCESS}"',
        "name": quoted(rows["name"]),
        "pid": f'"{place.process}"',
        "tid": quoted(rows["track"]),
        "ts": place.time(rows, "start_ns"),
        "dur": rows.select(microseconds("dur_ns")).to_series(),
        "args": rows["args"],
    }
    yield lines(members, rows.height)


def _counters(place: _Place, window: Window) -> Iterator[list[str]]:
    for series in counter_series(place.trace):
        whole = pl.DataFrame({"ts_ns": series.at_ns, "value": series.value})
        rows = whole.filter(pl.col("ts_ns").is_between(window.start_ns, window.end_ns, closed="left"))
        value = pl.Series(
            [f'{{"{series.unit}":{one:g}}}' for one in rows["value"].to_list()], dtype=pl.String
        )
        members: Columns = {
            "ph": '"C"',
            "cat": f'"{PROCESS}"',
            "name": msgspec.json.encode(series.name).decode(),
            "pid": f'"{place.process}"',
            "ts": place.time(rows, "ts_ns"),
            "args": value,
        }
        yield lines(members, rows.height)
