from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyrometer.store.sqlite import sqlite_engine
from pyrometer.store.store import Store

# Saves runs until it is stopped, and prints each one after `save` returned.
WRITER = """
import json, os, sys
from datetime import datetime, timezone
from pyrometer.store.run import new_run
from pyrometer.store.store import Store

folder, count = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(folder)
for number in range(count):
    run = new_run("bench", f"t{number}", {"text": "x" * 50_000}, environment={}, command=[], commit=(None, None),
                  now=datetime.now(timezone.utc))
    run = store.save(run, {"a.bin": os.urandom(100_000), "b.bin": b"b" * number})
    print(json.dumps({"id": run.id, **{artifact.name: artifact.sha256 for artifact in run.artifacts}}), flush=True)
"""


def _start(folder: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(count)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _finish(processes: list[subprocess.Popen[str]]) -> list[dict[str, str]]:
    """Let writers that wait at the line begin together; what they reported as saved."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    reported = []
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        reported += [json.loads(line) for line in out.splitlines()]
    return reported


def _check(store: Store, reported: list[dict[str, str]]) -> None:
    for report in reported:
        run = store.load(report["id"])
        for artifact in run.artifacts:
            content = store.read_file(run, artifact.name)
            assert hashlib.sha256(content).hexdigest() == artifact.sha256 == report[artifact.name]
        assert len(run.artifacts) == len(report) - 1


def test_two_processes_write_fifty_runs_each_and_none_fails(tmp_path: Path):
    reported = _finish([_start(tmp_path / "store", 50) for _ in range(2)])
    store = Store.open(tmp_path / "store", create=False)
    assert len(reported) == len(store.runs()) == 100
    _check(store, reported)


@pytest.mark.exhaustive
def test_processes_that_make_the_same_store_at_the_same_time_all_succeed(tmp_path: Path):
    assert len(_finish([_start(tmp_path / "store", 1) for _ in range(4)])) == 4
    assert len(Store.open(tmp_path / "store").runs()) == 4


def test_a_file_that_many_make_at_the_same_time_is_made_once(tmp_path: Path):
    def connect(file: Path) -> str:
        together.wait()
        with sqlite_engine(file, wait_s=60).connect() as connection:
            return str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())

    together = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        for number in range(60):
            assert set(pool.map(connect, [tmp_path / f"{number}.db"] * 6)) == {"wal"}


def test_a_writer_waits_for_a_lock_that_is_held(store: Store, make_run):
    blocker = sqlite3.connect(store.folder / "runs.db", isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    released = threading.Timer(0.5, blocker.execute, ["COMMIT"])
    start = time.monotonic()
    released.start()
    run = store.save(make_run())
    waited = time.monotonic() - start
    released.join()
    blocker.close()
    assert waited > 0.4
    assert store.load("last") == run


def test_a_reader_does_not_wait_for_a_writer(store: Store, make_run):
    run = store.save(make_run())
    blocker = sqlite3.connect(store.folder / "runs.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    assert Store.open(store.folder, wait_s=0).runs() == [run.summary()]
    blocker.close()


def _kill_at_random_moments(folder: Path, rounds: int, seed: int) -> None:
    moment = random.Random(seed)
    reported: list[dict[str, str]] = []
    for _ in range(rounds):
        process = _start(folder, 10_000)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        first = process.stdout.readline() if process.stdout is not None else ""
        time.sleep(moment.uniform(0.0, 0.5))
        process.kill()
        out, err = process.communicate()
        assert err == ""
        # The last line may have been cut off by the kill; then it was not reported.
        lines = [first, *out.splitlines(keepends=True)]
        reported += [json.loads(line) for line in lines if line.endswith("\n")]
    store = Store.open(folder)
    _check(store, reported)
    assert len(reported) >= rounds
    # Whatever else is listed is complete as well, and what was begun is cleaned up in time.
    for run in store.runs():
        for artifact in store.load(run.id).artifacts:
            assert len(store.read_file(store.load(run.id), artifact.name)) == artifact.size_bytes
    known = {run.id for run in store.runs()}
    leftovers = [entry for entry in (folder / "artifacts").iterdir() if entry.name not in known]
    assert len(leftovers) <= rounds


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_was_reported_as_saved_survives_kill_9(tmp_path: Path):
    _kill_at_random_moments(tmp_path / "store", rounds=3, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.exhaustive)])
def test_what_was_reported_as_saved_survives_many_kills(tmp_path: Path, rounds: int):
    _kill_at_random_moments(tmp_path / "store", rounds=rounds, seed=1)
