"""What an exported file says about itself, under the names that Kineto gives it."""

from __future__ import annotations

from typing import Any

from pyrometer.trace.info import DeviceInfo, ProcessGroup, RankInfo
from pyrometer.version import __version__


def head_of(info: RankInfo) -> dict[str, Any]:
    """The keys before `traceEvents`.

    Metadata that is more than a plain value is left out: some programs record their whole environment there, with
    passwords in it.
    """
    plain = {
        key: value for key, value in info.metadata.items() if isinstance(value, str | int | float | bool)
    }
    found: dict[str, Any] = {"schemaVersion": 1, **plain, "displayTimeUnit": "ms"}
    found |= {name: int(value) for name, value in info.options.items()}
    if info.devices:
        found["deviceProperties"] = [_device(device) for device in info.devices]
    job = _job(info)
    if job:
        found["distributedInfo"] = job
    for key, value in (("trace_id", info.trace_id), ("host_name", info.host)):
        if value is not None:
            found[key] = value
    if info.base_ns:
        found["baseTimeNanoseconds"] = info.base_ns
    return found | {"pyrometer_version": __version__}


def _job(info: RankInfo) -> dict[str, Any]:
    known = info.world_size is not None or info.rank_from != "order" or bool(info.groups)
    if not known:
        return {}
    found: dict[str, Any] = {"rank": info.rank, "world_size": info.world_size, "backend": info.backend}
    if info.groups:
        found["pg_config"] = [_group(group) for group in info.groups]
    return {key: value for key, value in found.items() if value is not None}


def _group(group: ProcessGroup) -> dict[str, Any]:
    return {
        "pg_name": group.name,
        "pg_desc": group.description,
        "backend_config": group.backend,
        "pg_size": group.size,
        "ranks": group.ranks,
    }


def _device(device: DeviceInfo) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": device.id,
        "name": device.name,
        "numSms": device.num_sms,
        "totalGlobalMem": device.total_memory_bytes,
        "warpSize": device.warp_size,
        "maxThreadsPerMultiprocessor": device.max_threads_per_sm,
        "regsPerMultiprocessor": device.registers_per_sm,
        "sharedMemPerMultiprocessor": device.shared_memory_per_sm_bytes,
    }
    if device.compute_capability is not None:
        major, _, minor = device.compute_capability.partition(".")
        found |= {"computeMajor": int(major), "computeMinor": int(minor or 0)}
    return {key: value for key, value in found.items() if value is not None}
