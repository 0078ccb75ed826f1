"""Reading many files: each on its own, in processes, and one bad file does not spoil the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.trace.jobs import executor
from pyrometer.trace.jobs import reduce as reducing
from pyrometer.trace.jobs.executor import (
    SMALL_BYTES,
    ProcessExecutor,
    SerialExecutor,
    executor_for,
    reduce_file,
)
from pyrometer.trace.jobs.job import Job, RankFailure
from pyrometer.trace.jobs.merge import merge_ranks, read_job
from pyrometer.trace.jobs.reduce import reduce_rank
from pyrometer.trace.jobs.summary import RankSummary
from pyrometer.trace.reading.read import read_trace


@pytest.mark.slow
def test_a_pool_of_processes_gives_what_one_process_gives(synthetic_job: Any) -> None:
    paths = synthetic_job(slow_us={2: 200}).write()
    assert read_job(paths, workers=2) == read_job(paths, workers=1)


def test_a_missing_and_a_damaged_rank_are_named_and_the_rest_is_compared(synthetic_job: Any) -> None:
    paths = synthetic_job(slow_us={2: 200}).write()
    paths[1].write_bytes(b"\x1f\x8b broken")
    paths[3] = paths[3].with_name("absent.json")
    job = read_job(paths, workers=1)
    assert [rank.rank for rank in job.ranks] == [0, 2]
    assert job.missing_ranks == [1, 3]
    assert [Path(failure.path).name for failure in job.failures] == ["absent.json", "rank1.json"]
    assert all(failure.message and "\n" not in failure.message for failure in job.failures)
    assert job.stragglers[0].rank == 2


def test_a_pool_is_for_large_files_or_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "usable_cores", lambda: 4)
    small, large = [tmp_path / "0.json", tmp_path / "absent.json"], [tmp_path / "1.json", tmp_path / "2.json"]
    small[0].write_text("{}")
    for path in large:
        path.touch()
        os.truncate(path, SMALL_BYTES // 2)
    assert isinstance(executor_for(small), SerialExecutor)
    assert isinstance(executor_for(small, workers=2), ProcessExecutor)
    assert isinstance(executor_for(large, workers=1), SerialExecutor)
    pool = executor_for(large)
    assert isinstance(pool, ProcessExecutor)
    assert pool.workers == 2


def test_nothing_usable_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of the 1 files could be used.*absent\.json"):
        read_job([tmp_path / "absent.json"])
    with pytest.raises(InputError, match="no trace files"):
        read_job([])
    with pytest.raises(InputError, match="at least 1"):
        ProcessExecutor(0)


def test_of_two_files_of_the_same_rank_one_is_left_out_and_named(synthetic_job: Any) -> None:
    paths = synthetic_job(num_ranks=2).write()
    copy = paths[1].with_name("zz_copy.json")
    copy.write_bytes(paths[1].read_bytes())
    job = read_job([*paths, copy], workers=1)
    assert [rank.rank for rank in job.ranks] == [0, 1]
    assert [(Path(failure.path).name, failure.rank) for failure in job.failures] == [("zz_copy.json", 1)]


def test_files_that_do_not_tell_their_rank_are_numbered_in_order(tmp_path: Path, new_builder: Any) -> None:
    paths = []
    for name in ("a", "b"):
        one = new_builder(tmp_path)
        one.op("aten::add", 0, 10)
        paths.append(one.write(f"{name}.json"))
    assert [rank.rank for rank in read_job(paths, workers=1).ranks] == [0, 1]


@pytest.mark.slow
def test_a_worker_that_dies_takes_only_its_own_file_along(
    synthetic_job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dying_reduce.py").write_text(
        "import os\nfrom pyrometer.trace.jobs.reduce import reduce_rank\n"
        "def reduce(trace):\n    return os._exit(1) if trace.rank == 1 else reduce_rank(trace)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from dying_reduce import reduce  # type: ignore[import-not-found]

    paths = synthetic_job(num_ranks=3).write()
    outcomes = list(ProcessExecutor(2).map_ranks(paths, reduce))
    failed = [outcome for outcome in outcomes if isinstance(outcome, RankFailure)]
    assert sorted(outcome.rank for outcome in outcomes if isinstance(outcome, RankSummary)) == [0, 2]
    assert [Path(failure.path).name for failure in failed] == ["rank1.json"]
    assert "died" in failed[0].message


def test_a_summary_does_not_grow_with_the_events(tmp_path: Path, new_builder: Any) -> None:
    sizes = []
    for count in (10, 2000):
        one = new_builder(tmp_path)
        one.annotate("ProfilerStep#0", 0, 30_000)
        for i in range(count):
            one.op("aten::add", i * 10, 5)
            one.launch("add", i * 10 + 1, i * 10 + 2, 3)
        sizes.append(len(to_json(reduce_rank(one.read(f"{count}.json")))))
    assert abs(sizes[1] - sizes[0]) < 50


def test_summaries_and_jobs_survive_json(synthetic_job: Any) -> None:
    paths = synthetic_job(slow_us={2: 200}).write()
    summaries = [reduce_rank(rank) for rank in read_trace(paths).ranks]
    again = [from_json(RankSummary, to_json(summary)) for summary in summaries]
    assert again == summaries
    job = merge_ranks(again)
    assert from_json(Job, to_json(job)) == job


def test_beyond_the_limit_collectives_are_left_out_and_counted(
    synthetic_job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducing, "MAX_CALLS", 3)
    job = read_job(synthetic_job().write(), executor=SerialExecutor())
    assert job.num_matched == 3
    assert job.num_calls_left_out == 4 * 2
    assert [rank.num_collectives for rank in job.ranks] == [5] * 4


def test_any_trace_can_be_reduced(real_traces: Path) -> None:
    for order, path in enumerate(sorted(real_traces.glob("*.json.gz"))):
        if path.stat().st_size > 200_000:
            continue
        outcome = reduce_file(path, order, reduce_rank)
        assert isinstance(outcome, RankSummary), outcome
        assert sum(outcome.parts.values()) == outcome.span_ns


def test_the_sampled_pair_of_a_real_job(real_traces: Path) -> None:
    job = read_job([real_traces / f"sampled_rank{rank}.json.gz" for rank in (0, 1)], workers=1)
    assert job.world_size == 128
    assert (len(job.ranks), len(job.missing_ranks)) == (2, 126)
    assert job.num_matched >= 5
    assert job.stragglers[0].rank == 1  # computes 29 % more, and most others' waiting is for it
    assert job.stragglers[0].suspects


def test_an_empty_trace_is_a_rank_with_nothing(tmp_path: Path, new_builder: Any) -> None:
    job = read_job([new_builder(tmp_path).write(f"rank{os.getpid()}.json")], workers=1)
    assert (job.ranks[0].span_ns, job.ranks[0].num_collectives, job.compute_imbalance) == (0, 0, None)
