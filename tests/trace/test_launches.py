"""Launches: delays, queues, graphs, waiting for launches; on the host, operators too small to be worth dispatching."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.launches import launches
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.device import LaunchReport
from pyrometer.trace.timing.distribution import distribution
from pyrometer.trace.timing.queues import queue_depth


def test_delays_are_exact_from_both_ends_of_the_call(builder):
    builder.launch("a", 0, 7.25, 10, call_us=5)
    builder.launch("b", 10, 12, 10, call_us=5, stream=8)  # starts before its launch returns
    device = launches(builder.read()).device
    assert (device.after_call.min_ns, device.after_call.max_ns) == (-3_000, 2_250)
    assert (device.after_start.min_ns, device.after_start.max_ns) == (2_000, 7_250)
    assert device.call.total_ns == device.call_ns == 10_000


def test_queue_depth_counts_what_waits_on_each_stream(builder):
    # Stream 7: launched at 0, 10, 20; started at 50, 60, 70. Stream 8: one, launched at 30 and started at 31.
    for i in range(3):
        builder.launch("k", 10 * i, 50 + 10 * i, 10)
    builder.launch("other", 30, 31, 5, stream=8, call_us=1)
    trace = builder.read()
    steps = queue_depth(trace)
    assert steps.filter(pl.col("stream") == 7)["depth"].to_list() == [1, 2, 3, 2, 1, 0]
    first, second = launches(trace).device.queues
    assert (first.stream, first.max_depth, first.num_launched) == (7, 3, 3)
    assert first.observed_ns == 80_000
    assert first.mean_depth == pytest.approx((10 + 20 + 90 + 20 + 10) / 80)
    assert first.empty_ns == 10_000  # the last kernel runs and nothing waits
    assert (second.stream, second.max_depth) == (8, 1)


def test_a_full_queue_is_seen(builder):
    for i in range(1030):
        builder.launch("k", i, 5_000 + i, 1, call_us=1)
    queue = launches(builder.read()).device.queues[0]
    assert queue.max_depth == 1030
    assert queue.full_ns == (5_006 - 1_023) * 1_000


def test_a_graph_is_one_launch_of_many_kernels(builder):
    call = builder.call("cudaGraphLaunch", 0, 10)
    for i in range(4):
        builder.device("kernel", f"k{i}", 20 + 10 * i, 5, correlation=call)
    device = launches(builder.read()).device
    assert (device.num_work, device.num_linked, device.after_call.count) == (4, 4, 1)
    assert device.graphs.mean_work == 4
    assert device.num_shorter_than_launch == 0


def test_a_device_waits_for_launches_or_for_work_to_start(builder):
    builder.launch("a", 0, 5, 10, call_us=1)  # runs 5…15
    builder.launch("b", 35, 45, 10, call_us=1)  # asked for at 35, runs 45…55: 20 µs waiting, 10 µs starting
    device = launches(builder.read()).device
    assert device.device_span_ns == 50_000
    assert (device.waiting_ns, device.starting_ns) == (20_000, 10_000)
    assert device.waiting_share == 0.4


def test_work_on_another_stream_or_device_counts_where_it_runs(builder):
    builder.launch("a", 0, 0, 10, call_us=1)
    builder.launch("b", 0, 10, 10, call_us=1, stream=8)
    builder.device("kernel", "far", 100, 10, device=1)
    builder.device("kernel", "far", 120, 10, device=1)
    device = launches(builder.read()).device
    assert device.device_span_ns == 20_000 + 30_000
    assert device.waiting_ns == 10_000


def test_short_kernels_and_their_lines(builder):
    for step in range(2):
        builder.annotate(f"ProfilerStep#{step}", 100 * step, 100)
        builder.python("net.py(7): forward", 100 * step, 90)
        for i in range(3):
            builder.op("aten::mul", 100 * step + 10 * i, 8)
            builder.launch("mul_kernel", 100 * step + 10 * i + 1, 100 * step + 10 * i + 8, 2)
    builder.launch("big", 210, 220, 400)
    report = launches(builder.read())
    device = report.device
    assert (device.num_short, device.short_ns, device.num_shorter_than_launch) == (6, 12_000, 6)
    assert device.launches_per_step == 3
    site = device.sites[0]
    assert (site.where.file, site.where.line, site.name, site.calls_per_step) == ("net.py", 7, "aten::mul", 3)
    assert site.share == pytest.approx(12 / 412)
    assert device.kernels_per_s == pytest.approx(7 / 620e-6)


def test_thousands_of_tiny_operators_are_named_with_their_line(builder):
    builder.annotate("ProfilerStep#0", 0, 20_000)
    builder.python("loop.py(3): main", 0, 20_000)
    for i in range(2_000):
        builder.op("aten::add", 8 * i, 4)
    builder.op("aten::mm", 17_000, 2_000)
    report = launches(builder.read())
    assert report.device is None
    host = report.host
    assert (host.num_ops, host.num_short, host.short_ns) == (2_001, 2_000, 8_000_000)
    assert host.short_share == host.own_short_share == 0.8
    assert host.ops_per_step == 2_001
    assert host.own.median_ns == 4_000
    assert host.between_ns == 1_999 * 4_000
    site = host.sites[0]
    assert (site.where.file, site.where.line, site.name, site.calls) == ("loop.py", 3, "aten::add", 2_000)


@pytest.mark.parametrize(("view_us", "limit_us", "short"), [(1, 10, 0), (8, 40, 30), (60, 100, 30)])
def test_short_is_what_takes_little_more_than_dispatch_does_here(builder, view_us, limit_us, short):
    for i in range(30):
        builder.op("aten::view", 400 * i, view_us)
        builder.op("aten::add", 400 * i + 100, 30)
        builder.op("aten::mm", 400 * i + 200, 150)
    host = launches(builder.read()).host
    assert host.dispatch_ns == view_us * 1000
    assert host.short_limit_ns == limit_us * 1000
    assert host.num_short == 30 + short


def test_short_nested_operators_count_by_their_own_time(builder):
    builder.annotate("ProfilerStep#0", 0, 1_000)
    for i in range(20):
        builder.op("aten::mean", 40 * i, 20)
        builder.op("aten::sum", 40 * i + 2, 9)
        builder.op("aten::div_", 40 * i + 12, 7)
    host = launches(builder.read()).host
    assert host.short_share == 0  # an outermost one takes 20 µs
    assert host.own_short_share == 1


def test_nested_operators_are_not_sites_of_their_own(builder):
    builder.op("aten::linear", 0, 9)
    builder.op("aten::addmm", 1, 7)
    builder.op("aten::copy_", 2, 1)
    host = launches(builder.read()).host
    assert (host.num_ops, host.num_nested, host.num_short) == (1, 2, 1)
    assert [site.name for site in host.sites] == ["aten::linear"]
    assert host.op_ns == 9_000


@given(values=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=50))
def test_quantiles_are_observed_values(values):
    found = distribution(pl.Series(values, dtype=pl.Int64).cast(pl.Int64))
    assert (found.min_ns, found.max_ns, found.count) == (min(values), max(values), len(values))
    assert found.median_ns in values
    assert found.p25_ns <= found.median_ns <= found.p95_ns <= found.p99_ns


@pytest.mark.parametrize("what", ["empty", "orphan", "unnamed"])
def test_odd_traces_give_empty_results(builder, what):
    if what == "orphan":
        builder.device("kernel", "k", 0, 5)
    if what == "unnamed":
        builder.op(None, 0, 5)
    report = launches(builder.read())
    assert from_json(LaunchReport, to_json(report)) == report
    assert (report.device is None) == (what != "orphan")


def test_real_traces_are_consistent(real_trace):
    trace = read_trace(real_trace).ranks[0]
    report = launches(trace)
    assert report.host.op_ns == trace.of_kind("cpu_op")["self_ns"].sum()
    if report.device is None:
        return
    device = report.device
    assert device.num_work == trace.of_kind("kernel", "memcpy", "memset").height
    assert 0 <= device.waiting_ns + device.starting_ns <= device.device_span_ns
    depths = queue_depth(trace)
    assert depths.group_by("track").agg(pl.col("depth").last())["depth"].unique().to_list() in ([], [0])
    assert np.all(depths["depth"].to_numpy() >= 0)
