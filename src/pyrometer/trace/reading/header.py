"""What a file says about itself: the keys before and after its events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
import polars as pl

from pyrometer.trace.info import DeviceInfo, ProcessGroup
from pyrometer.trace.reading.decoding import DECODE_ERRORS, decoder, is_short
from pyrometer.trace.reading.mending import attempts
from pyrometer.trace.reading.repair_log import RepairLog

DEEPEST = 3
"""How deep `traceEvents` may lie inside other objects."""

OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
TAKEN = frozenset(
    {
        *OPTIONS,
        "traceEvents",
        "deviceProperties",
        "distributedInfo",
        "baseTimeNanoseconds",
        "trace_id",
        "host_name",
        "hostname",
    }
)
"""Keys that have a field of their own; all others are kept as metadata."""

LONGEST = 2**20
"""Bytes of keys after the events: more is something else, such as a file that was written behind another."""

MOST_TRIES = 1000
MOST_BYTES = 32 * LONGEST
"""Decoded at most to find the last whole pair."""

_PAIR = re.compile(
    rb'"(rank|world_size|backend|baseTimeNanoseconds|trace_id|host_name|schemaVersion)"\s*:\s*(-?\d+|"[^"]*")'
)


def read_header(head: bytes, tail: bytes, repair_log: RepairLog, *, tail_at: int = 0) -> dict[str, Any]:
    """The keys around the events, decoded.

    Args:
        head: the text before the key `traceEvents`; empty for a bare list.
        tail: the text after the list of events.
        repair_log: where damage is counted.
        tail_at: offset of the tail in the file.
    """
    header: dict[str, Any] = {}
    if head:
        header |= _decode(head, b"", repair_log, 0)
    if len(tail) > LONGEST and head:
        repair_log.note("garbage_at_end", byte=tail_at)
        header |= _whole_pairs(tail[:LONGEST])
    elif tail.strip() and head:
        header |= _decode(b"", tail, repair_log, tail_at)
    header.pop("traceEvents", None)
    return header


def _decode(head: bytes, tail: bytes, repair_log: RepairLog, byte: int) -> dict[str, Any]:
    short = False
    for depth in range(DEEPEST):
        before = head or b'{"":' * depth + b"{"
        after = tail or b"}" * (depth + 1)
        try:
            return _innermost(decoder(dict[str, Any]).decode(before + b'"traceEvents":[]' + after))
        except DECODE_ERRORS as error:
            short = short or (bool(tail) and is_short(error))
    if short:
        repair_log.note("missing_end", byte=byte + len(tail))
        return _whole_pairs(tail)
    text = (head or b"{") + b'"traceEvents":[]' + (tail or b"}")
    for mended in attempts(text):
        try:
            found = decoder(dict[str, Any]).decode(mended.text)
        except DECODE_ERRORS:
            continue
        repair_log.note(mended.codes or {"garbage_at_end"}, byte=byte)
        return _innermost(found)
    repair_log.note("bad_header", byte=byte)
    return _scraped(text)


def _whole_pairs(tail: bytes) -> dict[str, Any]:
    """The keys after the events up to the cut."""
    cut = len(tail)
    for _ in range(min(MOST_TRIES, MOST_BYTES // max(cut, 1))):
        with suppress(*DECODE_ERRORS):
            return _innermost(decoder(dict[str, Any]).decode(b'{"traceEvents":[]' + tail[:cut] + b"}"))
        cut = tail.rfind(b",", 0, cut)
        if cut < 0:
            break
    return _scraped(tail)


def _innermost(found: dict[str, Any]) -> dict[str, Any]:
    """The object that holds the events, with the keys of those around it."""
    while "traceEvents" not in found:
        inner = next((v for v in found.values() if isinstance(v, dict) and _holds_events(v)), None)
        if inner is None:
            break
        found = {k: v for k, v in found.items() if v is not inner and k} | inner
    return found


def _holds_events(found: dict[str, Any]) -> bool:
    return "traceEvents" in found or any(isinstance(v, dict) and _holds_events(v) for v in found.values())


def _scraped(text: bytes) -> dict[str, Any]:
    """The few keys that matter most, out of a text that does not decode."""
    found: dict[str, Any] = {}
    for key, value in _PAIR.findall(text):
        name = key.decode()
        plain = int(value) if value[:1] != b'"' else value.strip(b'"').decode(errors="replace")
        if name in {"rank", "world_size", "backend"}:
            found.setdefault("distributedInfo", {}).setdefault(name, plain)
        else:
            found.setdefault(name, plain)
    return found


def describe(header: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `RankInfo` that the header tells; what it does not tell is left out.

    >>> describe({"distributedInfo": {"rank": 3, "world_size": 8, "nccl_version": "2.21"}, "with_stack": 1})
    {'base_ns': 0, 'world_size': 8, 'backend': None, 'host': None, 'trace_id': None, 'devices': [], 'groups': [], 'options': {'with_stack': True}, 'metadata': {'distributedInfo': {'nccl_version': '2.21'}}}
    """
    job = _mapping(header.get("distributedInfo"))
    metadata = {key: value for key, value in header.items() if key not in TAKEN}
    rest = {
        key: value
        for key, value in job.items()
        if key not in {"rank", "world_size", "backend", "pg_config", "pg_count"}
    }
    if rest:
        metadata["distributedInfo"] = rest
    return {
        "base_ns": _whole(header.get("baseTimeNanoseconds")) or 0,
        "world_size": _whole(job.get("world_size")),
        "backend": _text(job.get("backend")),
        "host": _text(header.get("host_name") or header.get("hostname")),
        "trace_id": _text(header.get("trace_id")),
        "devices": _devices(header),
        "groups": _groups(job.get("pg_config")),
        "options": {name: bool(_whole(header[name])) for name in OPTIONS if name in header},
        "metadata": metadata,
    }


def rank_of(header: Mapping[str, Any]) -> int | None:
    """The rank that the file names, if it does."""
    rank = _whole(_mapping(header.get("distributedInfo")).get("rank"))
    return rank if rank is not None and 0 <= rank < 2**31 else None


def _devices(header: Mapping[str, Any]) -> list[DeviceInfo]:
    is_amd = any(key.startswith(("hip_", "roctracer", "rocprofiler")) for key in header)
    listed = header.get("deviceProperties")
    mappings = [_mapping(one) for one in listed] if isinstance(listed, list) else []
    return [_device(mapping, i, is_amd=is_amd) for i, mapping in enumerate(mappings)]


def name_devices(devices: list[DeviceInfo], events: pl.DataFrame) -> list[DeviceInfo]:
    """The devices, and where the header names none, their family, as the categories of the events tell it."""
    if any(device.name for device in devices) or not events["cat"].unique().str.contains(r"(?i)^mtia_").any():
        return devices
    ids = {device.id for device in devices} | set(events["device"].drop_nulls().unique().to_list()) or {0}
    held = {device.id: device for device in devices}
    return [msgspec.structs.replace(held.get(i, DeviceInfo(id=i)), name="MTIA") for i in sorted(ids)]


def _device(one: Mapping[str, Any], i: int, *, is_amd: bool) -> DeviceInfo:
    name = str(one.get("name") or "")
    ident = _whole(one.get("id"))
    major, minor = _whole(one.get("computeMajor")), _whole(one.get("computeMinor"))
    is_amd = is_amd or name.startswith("AMD") or one.get("warpSize") == 64
    return DeviceInfo(
        id=i if ident is None else ident,
        name=name,
        num_sms=_whole(one.get("numSms")),
        total_memory_bytes=_whole(one.get("totalGlobalMem")),
        compute_capability=None if is_amd or major is None else f"{major}.{minor or 0}",
        warp_size=_whole(one.get("warpSize")),
        max_threads_per_sm=_whole(one.get("maxThreadsPerMultiprocessor")),
        registers_per_sm=_whole(one.get("regsPerMultiprocessor") or one.get("regsPerBlock")),
        shared_memory_per_sm_bytes=_whole(
            one.get("sharedMemPerMultiprocessor")
            or one.get("maxSharedMemoryPerMultiProcessor")
            or one.get("sharedMemPerBlock")
        ),
    )


def _groups(listed: Any) -> list[ProcessGroup]:
    if isinstance(listed, str):  # some writers quote it
        try:
            listed = msgspec.json.decode(listed)
        except DECODE_ERRORS:
            return []
    return [_group(_mapping(one)) for one in listed] if isinstance(listed, list) else []


def _group(one: Mapping[str, Any]) -> ProcessGroup:
    ranks = one.get("ranks")
    members = re.findall(r"\d+", ranks) if isinstance(ranks, str) else ranks
    return ProcessGroup(
        name=str(one.get("pg_name", "")),
        description=str(one.get("pg_desc") or ""),
        backend=str(one.get("backend_config") or one.get("backend") or ""),
        size=_whole(one.get("pg_size") or one.get("group_size")),
        ranks=[rank for member in members if (rank := _whole(member)) is not None]
        if isinstance(members, list)
        else [],
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


LARGEST = 2**63
"""Beyond this a number of the head is damage: tables hold 64 bits."""


def _whole(value: Any) -> int | None:
    """A whole number of 64 bits, also where it is quoted or written as a float or a boolean."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return {"true": 1, "false": 0}.get(value.lower())
    if not isinstance(value, (int, float)) or (isinstance(value, float) and not value.is_integer()):
        return None
    return int(value) if -LARGEST <= value < LARGEST else None


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)
