"""Several files are read by processes of their own, with the same result."""

from __future__ import annotations

import subprocess
import sys

import pytest
from polars.testing import assert_frame_equal

from pyrometer.errors import InputError
from pyrometer.trace.reading import workers
from pyrometer.trace.reading.workers import load_all


@pytest.fixture
def files(text, tmp_path):
    paths = []
    for i in range(3):
        paths.append(tmp_path / f"rank{i}.json")
        paths[-1].write_bytes(text.good(count=20 + i).replace(b'"rank": 2', b'"rank": %d' % i))
    return paths


def test_workers_give_what_one_process_gives(files):
    alone, together = load_all(files, workers=1), load_all(files, workers=2)
    for one, other in zip(alone, together, strict=True):
        assert one.info == other.info
        for name, table in one.tables.items():
            assert_frame_equal(table, other.tables[name])


@pytest.mark.slow
def test_refusal_of_a_worker_is_the_same_line(files, tmp_path):
    (tmp_path / "rank1.json").write_bytes(b"hello")
    with pytest.raises(InputError, match=r"rank1\.json: not a trace but text that is not JSON"):
        load_all(files, workers=2)


def test_without_workers_that_start_the_files_are_read_here(files, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert [one.info.rank for one in load_all(files, workers=2)] == [0, 1, 2]


def test_workers_that_die_are_done_without(files, monkeypatch):
    monkeypatch.setattr(workers, "__name__", "pyrometer.none")
    assert [one.info.rank for one in load_all(files, workers=2)] == [0, 1, 2]


def test_small_files_start_no_process(files, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert len(load_all(files)) == 3


@pytest.mark.slow
def test_script_without_a_guard_is_run_once(files, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from pyrometer.trace.reading.workers import load_all\n"
        "print('ran')\n"
        f"print(len(load_all([Path(p) for p in {[str(p) for p in files]!r}], workers=2)))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ran", "3"]
