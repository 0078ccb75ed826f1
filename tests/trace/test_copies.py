"""Copies: direction, memory, rate, what hid them and where they come from."""

from __future__ import annotations

from typing import Any

import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.copies import copies
from pyrometer.trace.records.device import Copies


def measured(builder: Any) -> Copies:
    found = copies(builder.read())
    assert from_json(Copies, to_json(found)) == found
    return found


@pytest.mark.parametrize(
    ("name", "kind", "memory"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "H2D", "pageable"),
        ("Memcpy HtoD (Pinned -> Device)", "H2D", "pinned"),
        ("Memcpy DtoH (Device -> Pinned)", "D2H", "pinned"),
        ("Memcpy DtoH (Device -> Host)", "D2H", "host"),
        ("Memcpy DtoD (Device -> Device)", "D2D", None),
        ("Memcpy PtoP (Device -> Device)", "P2P", None),
        ("Memcpy M2D", "H2D", None),
        ("CopyBuffer", "other", None),
    ],
)
def test_the_name_says_direction_and_memory(builder: Any, name: str, kind: str, memory: str | None) -> None:
    builder.launch(name, 0, 10, 10, cat="gpu_memcpy", bytes=1)
    (one,) = measured(builder).kinds
    assert (one.kind, one.memory) == (kind, memory)


def test_the_vendors_kind_stands_in_for_a_name_that_says_nothing(builder: Any) -> None:
    builder.launch("CopyBuffer", 0, 10, 10, cat="gpu_memcpy", kind="DtoH")
    (kind,) = measured(builder).kinds
    assert (kind.kind, kind.gb_per_s) == ("D2H", None)


def test_the_rate_is_bytes_over_time(builder: Any) -> None:
    name = "Memcpy HtoD (Pinned -> Device)"
    builder.launch(name, 0, 10, 10, cat="gpu_memcpy", bytes=120_000)
    builder.launch(name, 20, 30, 0.5, cat="gpu_memcpy", bytes=6_000)
    (kind,) = measured(builder).kinds
    assert (kind.num_copies, kind.total_bytes, kind.total_ns) == (2, 126_000, 10_500)
    assert kind.gb_per_s == 12.0
    assert (kind.num_small, kind.small_share) == (1, 0.5)


def test_overlap_is_with_compute_and_exposure_is_beside_no_kernel(builder: Any) -> None:
    builder.launch("Memcpy HtoD (Pinned -> Device)", 0, 100, 100, cat="gpu_memcpy", stream=9)  # 100..200
    builder.launch("gemm", 6, 50, 70)  # hides 20
    builder.launch("ncclDevKernel_AllReduce", 12, 150, 30, stream=11)  # covers 30, which is not overlap
    (kind,) = measured(builder).kinds
    assert (kind.busy_ns, kind.overlapped_ns, kind.exposed_ns) == (100_000, 20_000, 50_000)


def test_copies_on_two_streams_count_once_in_busy_time(builder: Any) -> None:
    name = "Memcpy DtoD (Device -> Device)"
    builder.launch(name, 0, 10, 20, cat="gpu_memcpy", stream=7)
    builder.launch(name, 6, 20, 20, cat="gpu_memcpy", stream=9)
    (kind,) = measured(builder).kinds
    assert (kind.total_ns, kind.busy_ns) == (40_000, 30_000)


def test_places_name_operator_and_line(builder: Any) -> None:
    builder.python("data.py(12): fetch", 0, 100)
    for i in range(3):
        builder.op("aten::copy_", 10 + 20 * i, 10)
        builder.launch(
            "Memcpy HtoD (Pageable -> Device)", 12 + 20 * i, 19 + 20 * i, 2, cat="gpu_memcpy", bytes=4
        )
    builder.op("aten::zeros", 120, 10)
    builder.launch("Memset (Device)", 122, 128, 5, cat="gpu_memset", bytes=64)
    found = measured(builder)
    first, second = found.places
    assert (first.kind, first.num_copies, first.total_bytes, first.total_ns) == ("H2D", 3, 12, 6_000)
    assert (first.where.op, first.where.file, first.where.line) == ("aten::copy_", "data.py", 12)
    assert (second.kind, second.where.op, second.where.file) == ("memset", "aten::zeros", None)
    assert (found.num_copies, found.total_bytes, found.total_ns) == (4, 76, 11_000)


def test_no_copies(builder: Any) -> None:
    builder.op("aten::mm", 0, 10)
    assert measured(builder) == Copies()


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("size", ["bytes", "size", "transfer_bytes"])
def test_on_mtia_transfers_are_copies_and_waits_are_no_work(builder, monkeypatch, native, size):
    """All that the device does is of one category there; the names tell what it is, and no properties name the device."""
    monkeypatch.setenv("PYROMETER_NATIVE", native)
    for i, (name, dur, args) in enumerate(
        [
            ("dma_request", 10, {size: 1 << 20}),
            ("fc_kernel", 30, {}),
            ("event_wait", 50, {}),
            ("dma_request", 20, {size: 3 << 20}),
        ]
    ):
        builder.op("aten::addmm", 100 * i, 40)
        builder.add(
            "mtia_runtime",
            "runFunction - job_prep_and_submit_for_execution",
            100 * i + 1,
            5,
            correlation=i + 1,
        )
        builder.device("mtia_ccp_events", name, 100 * i + 30, dur, correlation=i + 1, **args)
    trace = builder.read()
    found = copies(trace)
    assert (found.num_copies, found.total_bytes, found.total_ns) == (2, 4 << 20, 30_000)
    assert trace.of_kind("kernel")["name"].to_list() == ["fc_kernel"]
    assert breakdown(trace).parts.compute == 30_000
    assert [device.name for device in trace.info.devices] == ["MTIA"]
    assert trace.of_kind("memcpy")["parent"].null_count() == 0
