"""Who makes whom wait, by how much, how steadily, and with what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyrometer.trace.analysis.registry import analyze
from pyrometer.trace.jobs.before import LARGEST, work_before
from pyrometer.trace.jobs.calls import collective_calls
from pyrometer.trace.jobs.job import Straggler, Suspect
from pyrometer.trace.jobs.merge import read_job
from pyrometer.trace.reading.read import read_trace

US = 1000


def test_a_rank_with_slow_kernels_is_named_with_the_waiting_it_causes(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(slow_us={2: 200}).write(), workers=1)
    assert [straggler.rank for straggler in job.stragglers] == [2]
    slow = job.stragglers[0]
    assert slow.caused_wait_ns == job.wait_ns == 3 * 5 * 200 * US
    assert slow.delay_ns == 5 * 200 * US
    assert (slow.num_last, slow.num_steps, slow.persistence, slow.share) == (5, 5, 1.0, 1.0)
    suspect = slow.suspects[0]
    assert (suspect.name, suspect.side, suspect.excess_ns) == ("aten::mm", "device", 5 * 200 * US)
    assert [rank.waited_ns for rank in job.ranks] == [5 * 200 * US, 5 * 200 * US, 0, 5 * 200 * US]


def test_a_rank_that_waits_for_data_is_blamed_on_the_host(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(loading_us={1: 400}).write(), workers=1)
    assert [straggler.rank for straggler in job.stragglers] == [1]
    suspect = job.stragglers[0].suspects[0]
    assert suspect.side == "host"
    assert "DataLoader" in suspect.name
    assert suspect.excess_ns == 5 * 400 * US


def test_a_thread_that_sleeps_beside_the_work_is_no_reason(synthetic_job: Any) -> None:
    paths = synthetic_job(loading_us={1: 400}).write()
    document = json.loads(paths[1].read_text())
    asleep = {
        "cat": "python_function",
        "name": "<built-in function sleep>",
        "tid": 77,
        "ts": 1010,
        "dur": 430,
    }
    document["traceEvents"].append({**document["traceEvents"][0], **asleep, "args": {}})
    paths[1].write_text(json.dumps(document))
    (straggler,) = read_job(paths, workers=1).stragglers
    assert "DataLoader" in straggler.suspects[0].name
    assert not any("sleep" in suspect.name for suspect in straggler.suspects)


@pytest.mark.parametrize(
    ("own_ns", "excess_ns", "slows"), [(450, 440, True), (900, 440, False), (100, 100, False)]
)
def test_a_rank_that_does_what_no_other_does_is_late_by_no_chance(
    own_ns: int, excess_ns: int, slows: bool
) -> None:
    """Of three steps chance can never be told apart; a cause can."""
    suspect = Suspect(name="save", side="host", own_ns=own_ns, excess_ns=excess_ns)
    late = Straggler(
        rank=0, caused_wait_ns=900, delay_ns=460, gain_ns=400, num_last=3, share=1.0, num_steps=3,
        persistence=1.0, chance=0.03, suspects=[suspect],
    )  # fmt: skip
    assert late.slows(1000) == slows


def test_of_two_late_ranks_only_the_last_delays_and_by_its_lead(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(slow_us={1: 150, 3: 200}).write(), workers=1)
    assert [straggler.rank for straggler in job.stragglers] == [3]
    assert job.stragglers[0].delay_ns == 5 * 50 * US
    assert job.stragglers[0].caused_wait_ns == 5 * (200 + 50 + 200) * US


def test_an_even_job_has_no_straggler(synthetic_job: Any) -> None:
    job = read_job(synthetic_job().write(), workers=1)
    assert job.stragglers == []
    assert job.wait_ns == 0
    assert job.compute_imbalance == 1.0


def test_latency_skew_and_bandwidth_leave_the_waiting_out(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(slow_us={2: 200}).write(), workers=1)
    (collective,) = job.collectives
    assert (
        collective.name,
        collective.group,
        collective.group_size,
        collective.dtype,
        collective.num_matched,
    ) == (
        "all_reduce",
        "0",
        4,
        "float",
        5,
    )
    assert (collective.latency_ns, collective.skew_ns, collective.max_skew_ns) == (
        100 * US,
        200 * US,
        200 * US,
    )
    assert collective.bus_bandwidth == pytest.approx(4_000_000 / 100e-6 * 1.5)
    assert (collective.latest_rank, collective.latest_share) == (2, 1.0)


def test_exposed_communication_and_imbalance_per_rank(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(slow_us={2: 200}).write(), workers=1)
    exposed = [rank.exposed_communication_ns for rank in job.ranks]
    assert exposed == [5 * (300 - 30) * US] * 2 + [5 * (100 - 30) * US] + [5 * (300 - 30) * US]
    assert [rank.parts["exposed_comm"] for rank in job.ranks] == exposed
    assert all(sum(rank.parts.values()) == rank.span_ns for rank in job.ranks)
    computes = [330, 330, 530, 330]
    assert job.compute_imbalance == pytest.approx(530 / (sum(computes) / 4))


def test_the_analysis_and_the_reading_of_files_agree(synthetic_job: Any) -> None:
    paths = synthetic_job(slow_us={2: 200}).write()
    assert analyze(read_trace(paths), "ranks") == read_job(paths, workers=1)


def test_one_rank_alone_is_a_job_without_comparisons(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(num_ranks=1).write(), workers=1)
    assert (len(job.ranks), job.num_matched, job.stragglers, job.missing_ranks) == (1, 0, [], [])


def test_without_numbers_the_order_within_steps_decides(synthetic_job: Any) -> None:
    numbered = read_job(synthetic_job(slow_us={2: 200}).write(), workers=1)
    ordered = read_job(synthetic_job(slow_us={2: 200}, numbered=False).write(), workers=1)
    assert ordered.stragglers == numbered.stragglers
    assert any("matched by their order" in note for note in ordered.notes)


def test_groups_of_one_shape_are_put_beside_each_other(tmp_path: Any, new_builder: Any) -> None:
    paths = []
    for rank in range(4):
        one = new_builder(tmp_path, distributedInfo={"rank": rank, "world_size": 4})
        group, took = rank % 2, (400 if rank % 2 else 100)
        args = {
            "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1_000_000, "Out msg nelems": 1_000_000,
            "Group size": 2, "Process Group Name": f"dp{group}", "Process Group Ranks": str([group, group + 2]),
        }  # fmt: skip
        for step in range(4):
            one.annotate(f"ProfilerStep#{step}", 1000 * step, 900)
            one.launch("ncclDevKernel_AllReduce", 1000 * step + 5, 1000 * step + 50, took, Seq=step, **args)
        paths.append(one.write(f"rank{rank}.json"))
    beside = {one.group: one for one in read_job(paths, workers=1).collectives}
    fast, slow = beside["dp0"], beside["dp1"]
    assert slow.bus_bandwidth is not None
    assert (fast.bus_bandwidth, fast.bus_bandwidth_of_equals) == (4 * slow.bus_bandwidth, slow.bus_bandwidth)
    assert slow.bus_bandwidth_of_equals == fast.bus_bandwidth


def test_of_work_that_took_equally_long_the_same_is_kept_each_time(tmp_path: Any, new_builder: Any) -> None:
    one = new_builder(tmp_path, distributedInfo={"rank": 0, "world_size": 2})
    for number in range(60):
        one.op(f"aten::op{number:02}", 10 * number, 5)
    one.launch("ncclDevKernel_AllReduce", 700, 720, 100, **{"Collective name": "allreduce", "Group size": 2})
    trace = one.read()
    kept = work_before(trace, collective_calls(trace)).filter(side="host")["name"].to_list()
    assert kept == ["between operators", *(f"aten::op{number:02}" for number in range(LARGEST - 1))]
