"""What the file says about itself, before and after its events."""

from __future__ import annotations

import json

import pytest

from pyrometer.trace.reading.header import describe
from pyrometer.trace.reading.read import read_trace

DEVICE = {
    "id": 0,
    "name": "NVIDIA H100",
    "totalGlobalMem": 85_000_000_000,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "warpSize": 32,
    "sharedMemPerMultiprocessor": 233472,
    "numSms": 132,
}
JOB = {
    "backend": "nccl",
    "rank": 3,
    "world_size": 8,
    "pg_count": 1,
    "nccl_version": "2.21.5",
    "pg_config": [
        {
            "pg_name": "0",
            "pg_desc": "default_pg",
            "backend_config": "cuda:nccl",
            "pg_size": 8,
            "ranks": [0, 1],
        }
    ],
}


def test_every_field_is_filled(text):
    head = {
        "deviceProperties": [DEVICE],
        "distributedInfo": JOB,
        "record_shapes": 1,
        "with_stack": 0,
        "trace_id": "AB12",
        "host_name": "node7",
        "cuda_runtime_version": 12080,
    }
    info = text.load(text.good(**head)).info
    (device,) = info.devices
    assert (device.name, device.num_sms, device.compute_capability) == ("NVIDIA H100", 132, "9.0")
    assert (device.warp_size, device.max_threads_per_sm, device.registers_per_sm) == (32, 2048, 65536)
    assert (device.total_memory_bytes, device.shared_memory_per_sm_bytes) == (85_000_000_000, 233472)
    assert (info.rank, info.rank_from, info.world_size, info.backend) == (3, "distributedInfo", 8, "nccl")
    (group,) = info.groups
    assert (group.name, group.description, group.backend) == ("0", "default_pg", "cuda:nccl")
    assert (group.size, group.ranks) == (8, [0, 1])
    assert info.options == {"record_shapes": True, "with_stack": False}
    assert (info.host, info.trace_id, info.base_ns) == ("node7", "AB12", 5)
    assert info.metadata["cuda_runtime_version"] == 12080
    assert info.metadata["distributedInfo"] == {"nccl_version": "2.21.5"}


def test_keys_after_the_events_count_as_much_as_those_before(text):
    events = json.loads(text.good())["traceEvents"]
    late = json.dumps(
        {"traceEvents": events, "distributedInfo": JOB, "baseTimeNanoseconds": 7, "traceName": "x"}
    )
    info = text.load(late.encode(), chunk_bytes=500).info
    assert (info.rank, info.world_size, info.base_ns, info.metadata) == (
        3,
        8,
        7,
        {"traceName": "x", "distributedInfo": {"nccl_version": "2.21.5"}},
    )


def test_amd_devices_have_no_compute_capability():
    device = {**DEVICE, "name": "AMD Instinct MI300X", "warpSize": 64}
    assert describe({"deviceProperties": [device]})["devices"][0].compute_capability is None
    assert (
        describe({"deviceProperties": [DEVICE], "hip_driver_version": 6})["devices"][0].compute_capability
        is None
    )


@pytest.mark.parametrize(
    "header",
    [
        {"distributedInfo": None, "deviceProperties": None, "baseTimeNanoseconds": None},
        {"distributedInfo": [], "deviceProperties": {}, "baseTimeNanoseconds": "x", "with_stack": "yes"},
        {"distributedInfo": {"rank": "two", "pg_config": "odd"}, "deviceProperties": [None, 5]},
        {"distributedInfo": {"rank": -1, "pg_config": [None, {"ranks": 5}]}, "host_name": ""},
    ],
)
def test_odd_values_never_fail(header):
    described = describe(header)
    assert described["base_ns"] == 0
    assert described["host"] is None


def test_real_headers(real_traces):
    h100 = read_trace(real_traces / "h100_bert_small.json.gz").rank().info
    assert (h100.devices[0].compute_capability, h100.devices[0].num_sms) == ("9.0", 132)
    assert h100.options["with_stack"]
    assert h100.trace_id
    amd = read_trace(real_traces / "mi300_bert_small.json.gz").rank().info
    assert (amd.devices[0].compute_capability, amd.devices[0].warp_size) == (None, 64)
    gloo = read_trace(real_traces / "cpu_only_rank34.json.gz").rank().info
    assert (gloo.rank, gloo.world_size, gloo.backend, len(gloo.groups)) == (34, 300, "gloo", 11)
    assert len(gloo.groups[0].ranks) == 300


def test_no_real_trace_is_said_to_be_damaged(real_trace):
    info = read_trace(real_trace, cache=None).rank().info
    assert info.repaired == []
    assert info.num_lost_events == 0
    assert info.num_events > 0
