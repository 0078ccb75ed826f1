"""Opening traces: files in, a linked `Trace` out."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from pyrometer.trace.info import DeviceInfo, RankInfo
from pyrometer.trace.reading.collector import Collector
from pyrometer.trace.reading.shapes import Event, ExactEvent
from pyrometer.trace.trace import RankTrace, Trace


def read_trace(paths: str | Path | list[str | Path]) -> Trace:
    """Read PyTorch traces, one file per rank."""
    listed = [paths] if isinstance(paths, str | Path) else paths
    return Trace(tuple(_read_one(Path(path), i) for i, path in enumerate(listed)))


class _Document(msgspec.Struct):
    traceEvents: list[Event] = []


class _Exact(msgspec.Struct):
    traceEvents: list[ExactEvent] = []


def _read_one(path: Path, order: int) -> RankTrace:
    raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    head = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    head.pop("traceEvents")
    meta = {k: msgspec.json.decode(v) for k, v in head.items()}
    dist = meta.get("distributedInfo") or {}
    events = msgspec.json.decode(raw, type=_Document).traceEvents
    base = meta.get("baseTimeNanoseconds") or 0
    if not base and any(type(e.ts) is float for e in events):
        events = msgspec.json.decode(raw, type=_Exact).traceEvents
    rank = dist.get("rank", order)
    c = Collector(rank)
    c.add(events)
    info = RankInfo(
        rank=rank,
        path=str(path),
        raw_bytes=len(raw),
        num_events=c.num_events,
        base_ns=base,
        world_size=dist.get("world_size"),
        backend=dist.get("backend"),
        unknown_categories=dict(c.unknown_categories),
        devices=[
            DeviceInfo(
                id=d["id"],
                name=d.get("name", ""),
                num_sms=d.get("numSms"),
                total_memory_bytes=d.get("totalGlobalMem"),
            )
            for d in meta.get("deviceProperties", [])
        ],
        metadata={k: v for k, v in meta.items() if k not in ("deviceProperties", "distributedInfo")},
    )
    return RankTrace(info, c.tables())
