"""A job is read once: files that have not changed are not opened again, and many ranks are compared in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrometer.trace.jobs import merge
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.jobs.kept import Kept
from pyrometer.trace.jobs.merge import merge_ranks, read_job, summarise
from pyrometer.trace.jobs.summary import RankSummary
from pyrometer.trace.reporting import job_report
from pyrometer.trace.reporting.job_report import report_files


class Counting(SerialExecutor):
    """Notes which files it is asked to read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def map_ranks(
        self, paths: Sequence[Path], reduce: Any, orders: Sequence[int] | None = None
    ) -> Iterator[Any]:
        self.read += [path.name for path in paths]
        return super().map_ranks(paths, reduce, orders)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYROMETER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ranks"


def read(paths: list[Path]) -> list[str]:
    counting = Counting()
    read_job(paths, executor=counting)
    return counting.read


def test_a_job_is_read_once_and_told_alike(synthetic_job: Any) -> None:
    paths = synthetic_job(slow_us={2: 200}).write()
    first = read_job(paths, executor=SerialExecutor())
    counting = Counting()
    assert read_job(paths, executor=counting) == first
    assert counting.read == []


def test_only_what_is_new_or_changed_is_read(synthetic_job: Any) -> None:
    paths = synthetic_job().write()
    read(paths[:3])
    assert read(paths) == ["rank3.json"]
    os.utime(paths[1], ns=(1, 1))
    assert read(paths) == ["rank1.json"]
    paths[2].write_text(paths[2].read_text() + " ")
    assert read(paths) == ["rank2.json"]


def test_a_file_whose_rank_is_its_place_is_read_again_at_another_place(
    tmp_path: Path, new_builder: Any
) -> None:
    paths = []
    for name in ("a", "b"):
        one = new_builder(tmp_path)
        one.op("aten::add", 0, 10)
        paths.append(one.write(f"{name}.json"))
    assert read(paths) == ["a.json", "b.json"]
    assert read(paths) == []
    assert read(paths[::-1]) == ["b.json", "a.json"]
    assert [row.rank for row in read_job(paths).ranks] == [0, 1]


def test_damaged_entries_are_made_again_and_a_cache_that_cannot_be_written_is_done_without(
    synthetic_job: Any, cache: Path, tmp_path: Path
) -> None:
    paths = synthetic_job(num_ranks=2).write()
    read(paths)
    for entry in cache.iterdir():
        entry.write_bytes(entry.read_bytes()[:40])
    assert read(paths) == ["rank0.json", "rank1.json"]
    assert read(paths) == []
    (blocked := tmp_path / "file").write_text("")
    kept = Kept(RankSummary, blocked / "ranks")
    assert len(list(summarise(paths, SerialExecutor(), kept))) == 2
    assert "cannot be written" in kept.note


def test_of_many_ranks_all_are_compared_and_few_are_reported_on(
    synthetic_job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_report, "MOST_ALONE", 3)
    monkeypatch.setattr(job_report, "REPORTED", 2)
    paths = synthetic_job(num_ranks=6, slow_us={4: 200}).write()
    report = report_files(paths, executor=SerialExecutor())
    assert report.job is not None
    assert len(report.job.ranks) == 6
    assert [one.rank for one in report.ranks] == [0, 4]


def test_merging_holds_no_more_collectives_than_its_bound(
    synthetic_job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "MERGED_CALLS", 12)
    job = merge_ranks(summarise(synthetic_job(slow_us={2: 200}).write(), SerialExecutor()))
    assert (job.num_matched, job.num_calls_left_out) == (3, 8)
    assert job.stragglers[0].rank == 2
    assert job.warnings == [
        "who waits for whom is told by the first 3 collectives of each rank; 8 more are left out"
    ]
