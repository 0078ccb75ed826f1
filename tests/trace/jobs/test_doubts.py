"""Files that do not fit together: each fault is one line, and the rest is compared all the same."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pyrometer.cli.main import main
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.jobs.merge import read_job

HOUR_US = 3600e6


def job_of(paths: list[Path]) -> Job:
    return read_job(paths, workers=1)


def rewrite(path: Path, change: Any) -> None:
    """Change the document of a file."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_sound_job_raises_no_doubt(synthetic_job: Any) -> None:
    assert job_of(synthetic_job(slow_us={2: 200}, clock_us={1: 300}).write()).warnings == []


def test_ranks_of_different_jobs(synthetic_job: Any) -> None:
    paths = synthetic_job().write()
    rewrite(paths[3], lambda document: document["distributedInfo"].update(world_size=8))
    first = job_of(paths).warnings[0]
    assert first == "the files are of jobs of 4 and of 8 ranks; pass the files of one job only"


def test_two_files_for_one_rank(synthetic_job: Any, capfd: pytest.CaptureFixture[str]) -> None:
    paths = synthetic_job().write()
    copy = paths[1].with_name("rank_again.json")
    copy.write_bytes(paths[1].read_bytes())
    (only,) = job_of([*paths, copy]).warnings
    assert only == f"left out {copy}: claims to be rank 1, as {paths[1]} does; pass one file per rank"
    assert main(["trace", str(paths[0].parent), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert [report["rank"] for report in told["evidence"]["ranks"]] == [0, 1, 2, 3]


def test_of_two_runs_in_a_folder_the_later_is_compared_whatever_its_files_are_called(
    synthetic_job: Any,
) -> None:
    """Names begin with the number of a process, which falls from rank to rank, and is larger or smaller in the run before."""
    paths = synthetic_job(slow_us={2: 200}).write()
    for rank, path in enumerate(paths):
        path.rename(path.with_name(f"host_{[998, 1002, 1001, 1003][rank]}.pt.trace.json"))
    later = synthetic_job(slow_us={1: 300}, clock_us=dict.fromkeys(range(4), 60 * HOUR_US / 1000)).write()
    moved = [
        path.rename(path.with_name(f"host_{[1000, 1004, 999, 997][rank]}.pt.trace.json"))
        for rank, path in enumerate(later)
    ]
    job = job_of(sorted(paths[0].parent.glob("*.json")))
    assert [row.path for row in job.ranks] == [str(path) for path in moved]
    assert [straggler.rank for straggler in job.stragglers] == [1]
    (only,) = job.warnings
    assert "and 3 more such: it recorded rank " in only
    assert "3 min 36 s earlier than the file that is compared" in only


def test_the_steps_of_a_file_that_is_cut_off_are_no_doubt_of_their_own(synthetic_job: Any) -> None:
    paths = synthetic_job().write()
    paths[2].write_text(paths[2].read_text()[: paths[2].stat().st_size // 2])
    (only,) = job_of(paths).warnings
    assert only.startswith("1 file cut off: that of rank 2")


def test_clocks_hours_apart_are_aligned_and_said(synthetic_job: Any) -> None:
    job = job_of(synthetic_job(slow_us={2: 200}, clock_us={1: 2 * HOUR_US, 3: -HOUR_US}).write())
    assert [line.split("; ")[0] for line in job.warnings] == [
        "the clock of rank 1 is 2 h 0 min ahead of that of rank 0",
        "the clock of rank 3 is 1 h 0 min behind that of rank 0",
    ]
    assert [straggler.rank for straggler in job.stragglers] == [2]


def test_ranks_that_nothing_ties_may_be_of_two_runs(synthetic_job: Any) -> None:
    skip = {(1, step) for step in range(5)}
    (only,) = job_of(synthetic_job(num_ranks=2, clock_us={1: 3 * HOUR_US}, skip=skip).write()).warnings
    assert "the clock of rank 1 is 3 h 0 min ahead of that of rank 0; no collective ties them" in only
    assert "two runs" in only


def test_ranks_with_different_numbers_of_steps(synthetic_job: Any) -> None:
    (only,) = job_of(synthetic_job(first_step={1: 2}).write()).warnings
    assert "different numbers of steps: 5 on most, 3 on rank 1" in only


def test_a_truncated_file_is_told_and_used(synthetic_job: Any) -> None:
    paths = synthetic_job().write()
    whole = gzip.compress(paths[2].read_bytes())
    cut = paths[2].with_suffix(".json.gz")
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    job = job_of([*paths[:2], cut, paths[3]])
    assert [row.rank for row in job.ranks] == [0, 1, 2, 3]
    assert any("1 file cut off: that of rank 2" in line for line in job.warnings)


def test_an_unknown_world_size_leaves_gaps_told_by_the_numbers(synthetic_job: Any) -> None:
    paths = synthetic_job().write()
    for path in paths:
        rewrite(path, lambda document: document["distributedInfo"].pop("world_size"))
    assert "do not say how many ranks" in job_of(paths).warnings[0]
    assert job_of([paths[0], paths[3]]).warnings[0].endswith("; of rank 1, 2 there is no file")


def test_missing_ranks_are_counted(synthetic_job: Any, capfd: pytest.CaptureFixture[str]) -> None:
    paths = synthetic_job(num_ranks=20).write()
    for path in paths[3:18:3]:
        path.unlink()
    assert main(["trace", str(paths[0].parent)]) == 0
    told = " ".join(capfd.readouterr().out.split())
    assert told.startswith("15 of 20 ranks ")
    assert "15 of 20 ranks: no trace of rank 3, 6, 9, 12, 15" in told
