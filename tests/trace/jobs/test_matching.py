"""Collectives that do not match are counted and named, never dropped in silence."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrometer.trace.jobs.merge import merge_ranks, read_job
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.jobs.summary import pack
from pyrometer.trace.reading.read import read_trace


def test_a_rank_that_left_a_call_out_is_named(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(skip={(1, 2)}).write(), workers=1)
    assert job.num_mismatches == {"missing": 1}
    (mismatch,) = job.mismatches
    assert (mismatch.kind, mismatch.sequence, mismatch.step, mismatch.ranks) == (
        "missing",
        3,
        "ProfilerStep#2",
        [1],
    )
    assert "ranks 0, 2, 3 have it, ranks 1 do not" in mismatch.message
    assert job.num_matched == 5


def test_the_same_without_numbers_stays_within_its_step(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(skip={(1, 2)}, numbered=False).write(), workers=1)
    assert job.num_mismatches == {"missing": 1}
    assert (job.mismatches[0].step, job.mismatches[0].ranks) == ("ProfilerStep#2", [1])


def test_unequal_messages_are_named(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(elements={(3, 1): 999_999}).write(), workers=1)
    assert job.num_mismatches == {"sizes": 1}
    assert "3999996, 4000000 bytes" in job.mismatches[0].message


def test_different_collectives_under_one_number_are_named(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(names={(0, 4): "broadcast"}).write(), workers=1)
    assert job.num_mismatches == {"names": 1}
    assert (job.mismatches[0].name, job.mismatches[0].sequence) == ("all_reduce/broadcast", 5)


def test_what_one_rank_recorded_before_the_others_is_no_mismatch(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(first_step={0: 2}).write(), workers=1)
    assert job.num_mismatches == {}
    assert job.num_outside == 2


def test_many_mismatches_are_all_counted_and_few_are_listed(synthetic_job: Any) -> None:
    job = read_job(synthetic_job(num_steps=90, skip={(1, step) for step in range(10, 80)}).write(), workers=1)
    assert job.num_mismatches == {"missing": 70}
    assert len(job.mismatches) == 50


def test_the_order_in_which_summaries_come_does_not_matter(synthetic_job: Any) -> None:
    summaries = [reduce_rank(rank) for rank in read_trace(synthetic_job(slow_us={2: 200}).write()).ranks]
    shuffled = summaries.copy()
    random.Random(3).shuffle(shuffled)
    assert merge_ranks(shuffled) == merge_ranks(summaries)


def test_collectives_that_cannot_be_one_are_taken_out(synthetic_job: Any) -> None:
    # One all-reduce of rank 1 seems to have run a second later than on all others: a wrong match.
    traces = read_trace(synthetic_job(numbered=False).write()).ranks
    summaries = [reduce_rank(trace) for trace in traces]
    calls = summaries[1].calls.frame()
    moved = calls.with_columns(start_ns=calls["start_ns"].scatter(4, calls["start_ns"][4] + 10**9))
    changed = msgspec.structs.replace(summaries[1], calls=pack(moved))
    job = merge_ranks([summaries[0], changed, *summaries[2:]])
    assert job.num_mismatches == {"apart": 1}
    assert job.num_matched == 4
    assert job.wait_ns == 0


def test_a_member_of_the_group_that_never_calls_is_named(synthetic_job: Any) -> None:
    paths = synthetic_job(num_ranks=3, num_steps=2, skip={(2, 0), (2, 1)}).write()
    job = read_job(paths, workers=1)
    assert job.num_mismatches == {}  # rank 2 shows no collective at all, of any group
    assert [rank.num_collectives for rank in job.ranks] == [2, 2, 0]


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["cpu_op", "user_annotation", "kernel", "cuda_runtime", "python_function", "gpu_memcpy"]
            ),
            st.sampled_from(
                [
                    "c10d::allreduce_",
                    "record_param_comms",
                    "nccl:all_reduce",
                    "gloo:send",
                    "gloo:all_reduce",
                    "aten::mm",
                    "ncclDevKernel_AllGather",
                    "ProfilerStep#1",
                    "ProfilerStep#2",
                    "c10d::send",
                    None,
                ]
            ),
            st.integers(0, 100),
            st.integers(0, 40),
            st.sampled_from([0, 1]),
            st.sampled_from(
                [
                    {},
                    {"Collective name": "send", "Dst Rank": 1},
                    {"Collective name": "recv", "Src Rank": 0},
                    {"Collective name": "allreduce", "Seq": 3, "dtype": "Float", "In msg nelems": 5},
                    {"Input Dims": [[]]},
                ]
            ),
            st.sampled_from([None, 1, 2]),
        ),
        max_size=25,
    )
)
def test_any_mixture_of_events_is_compared_without_an_error(events: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for rank in (0, 1):
            told = [
                {
                    "ph": "X",
                    "cat": cat,
                    "name": name,
                    "pid": 0 if cat in {"kernel", "gpu_memcpy"} else 100,
                    "tid": 7 if cat in {"kernel", "gpu_memcpy"} else 100 + track,
                    "ts": ts,
                    "dur": dur,
                    "args": args
                    | ({"correlation": key} if key else {})
                    | ({"device": 0, "stream": 7} if track else {}),
                }
                for cat, name, ts, dur, track, args, key in events[rank * 3 :]
            ]
            path = Path(folder) / f"rank{rank}.json"
            path.write_text(
                json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": told})
            )
            paths.append(path)
        summaries = [reduce_rank(trace) for trace in read_trace(paths).ranks]
        job = merge_ranks(summaries)
    assert len(job.ranks) == 2
    for row in job.ranks:
        assert 0 <= row.exposed_communication_ns <= row.communication_ns
        assert 0 <= row.waited_ns <= max(1, row.num_collectives) * 40_000
