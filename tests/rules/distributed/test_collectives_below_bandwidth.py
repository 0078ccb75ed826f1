from __future__ import annotations

import msgspec
import pytest

from pyrometer.rules.case import Case
from pyrometer.trace.jobs.job import JobCollective
from pyrometer.trace.records.device import CollectiveGroup

SIZE = 64 << 20


def job_with(evidence, *, rate, best, host=None, devices=(), calls=50, equals=None):
    """The job of some traces with one collective of a known bandwidth."""
    duration = sum(row.span_ns for row in evidence.job.ranks) // 2
    collective = JobCollective(
        name="all_reduce",
        group="0",
        group_size=4,
        dtype="float",
        num_matched=calls,
        bytes=SIZE,
        latency_ns=1,
        skew_ns=0,
        max_skew_ns=0,
        wait_ns=0,
        duration_ns=duration,
        bus_bandwidth=rate,
        bus_bandwidth_of_equals=equals,
        group_ranks="[0, 4]",
    )
    group = CollectiveGroup(
        name="all_reduce",
        group="0",
        group_size=4,
        dtype="float",
        num_calls=calls,
        num_timed=calls,
        bytes=SIZE * calls,
        total_ns=duration,
        exposed_ns=duration,
        overlapped_ns=0,
        best_bus_bandwidth=best,
    )
    replace = msgspec.structs.replace
    ranks = [replace(row, host=host) for row in evidence.job.ranks]
    reports = tuple(replace(rank, collectives=[group], devices=list(devices)) for rank in evidence.ranks)
    job = replace(evidence.job, collectives=[collective], ranks=ranks)
    return Case(target="test", job=job, ranks=reports, trace=reports[0])


def test_collectives_far_below_their_fastest_call_are_found(findings, synthetic):
    (finding,) = findings("PYR610", job_with(synthetic(), rate=40e9, best=200e9))
    assert "20.0 % of its fastest call" in finding.message
    assert finding.cost.share == pytest.approx(0.5 * 0.8, rel=0.01)


def test_a_group_that_is_slower_than_those_that_lie_alike_is_found(findings, synthetic):
    (finding,) = findings("PYR610", job_with(synthetic(), rate=40e9, best=41e9, equals=100e9))
    assert "among ranks [0, 4] moves 40.0 GB/s, 40.0 % of what the groups beside it reach" in finding.message
    assert finding.evidence["group_ranks"] == "[0, 4]"
    assert findings("PYR610", job_with(synthetic(), rate=80e9, best=81e9, equals=100e9)) == []


def test_links_that_are_known_set_the_mark(findings, synthetic):
    a100 = ["NVIDIA A100-SXM4-80GB"]
    (finding,) = findings("PYR610", job_with(synthetic(), rate=20e9, best=22e9, host="a", devices=a100))
    assert "of NVLink's bandwidth" in finding.message
    assert findings("PYR610", job_with(synthetic(), rate=240e9, best=250e9, host="a", devices=a100)) == []


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 150e9, "best": 200e9},
        {"rate": 20e9, "best": 22e9, "devices": ["NVIDIA A100-PCIE-40GB"], "host": "a"},
        {"rate": 20e9, "best": 22e9, "devices": ["NVIDIA A100-SXM4-80GB"]},  # on machines that are not known
        {"rate": 40e9, "best": 200e9, "calls": 2},
    ],
)
def test_what_is_near_its_best_or_not_known_is_silent(findings, synthetic, options):
    assert findings("PYR610", job_with(synthetic(), **options)) == []


def test_small_messages_are_silent(findings, synthetic):
    assert findings("PYR610", synthetic()) == []


def test_the_examples_are_silent(findings, example_jobs):
    assert findings("PYR610", example_jobs["late"]) == []
    assert findings("PYR610", example_jobs["fixed"]) == []


def of_sizes(fast, slow):
    """Elements of the all-reduce of each rank and step, the first larger than the others; all take 100 µs."""
    return {(rank, step): slow if step else fast for rank in range(4) for step in range(5)}


def test_calls_in_files_that_are_slower_than_the_fastest_of_them_are_found(findings, synthetic):
    """Five calls of 100 µs, of which the first carries 256 MiB and the others 32 MiB each."""
    case = synthetic(elements=of_sizes(64 << 20, 8 << 20))
    (finding,) = findings("PYR610", case)
    assert "all_reduce of 32.0 MiB" in finding.message
    assert "30.0 % of its fastest call" in finding.message
    moving = 4 * 5 * 100_000 / sum(row.span_ns for row in case.job.ranks)
    assert finding.cost.share == pytest.approx(0.7 * moving, rel=0.01)


def test_calls_in_files_that_are_all_alike_are_silent(findings, synthetic):
    assert findings("PYR610", synthetic(elements=of_sizes(8 << 20, 8 << 20))) == []
