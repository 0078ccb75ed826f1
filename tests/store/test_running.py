"""Runs that are going on: announced, told how far they are, and forgotten when they end in whatever way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pyrometer.record import to_json
from pyrometer.store import running
from pyrometer.store.running import BURST, MOST_POINTS, SILENT_S, Announcement, elapsed_s, list_running
from pyrometer.store.store import Store


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return time.time()


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(running, "time", clock)
    return clock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Store.open(tmp_path / "store").folder


def announce(folder: Path, **options) -> Announcement:
    return Announcement(folder, **{"kind": "bench", "target": "model.py:work", **options})


def files(folder: Path) -> list[Path]:
    return sorted((folder / "running").glob("*")) if (folder / "running").exists() else []


def test_a_run_is_listed_while_it_goes_on(folder):
    with announce(folder) as announcement:
        assert list_running(folder) == []
        announcement.tell(0.25, "measuring", num_samples=12, step_s=0.004)
        (one,) = list_running(folder)
        assert (one.kind, one.target, one.stage, one.share) == ("bench", "model.py:work", "measuring", 0.25)
        assert (one.num_samples, one.step_s, one.pid) == (12, 0.004, os.getpid())
        assert 0 <= elapsed_s(one) < 60
    assert list_running(folder) == []
    assert not (folder / "running").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_it_is_forgotten_when_it_ends_badly(folder, error):
    def run():
        with announce(folder) as announcement:
            announcement.tell(0.5, "measuring")
            raise error

    with pytest.raises(error):
        run()
    assert files(folder) == []


def test_it_is_written_twice_a_second_at_most_but_for_a_few_stages(folder, clock):
    with announce(folder) as announcement:
        for _ in range(2000):
            clock.now_s += 0.01
            announcement.tell(None, "measuring", step_s=0.1)
            announcement.tell(None, "another stage", step_s=0.1)
        (one,) = list_running(folder)
    # 20 s of stages that take turns, each of which would be written if only its words counted.
    assert 20 / 0.5 <= len(one.course) <= 20 / 0.5 + BURST


def test_a_new_stage_is_told_at_once_and_a_number_makes_none(folder, clock):
    with announce(folder) as announcement:
        announcement.tell(1.0, "measuring")
        announcement.tell(1.0, "tracing a few steps")
        assert list_running(folder)[0].stage == "tracing a few steps"
        announcement.tell(1.0, "cell 1")
        announcement.tell(1.0, "cell 2")
        assert list_running(folder)[0].stage == "cell 1"
        clock.now_s += 0.5
        announcement.tell(1.0, "cell 3")
        assert list_running(folder)[0].stage == "cell 3"


def test_a_long_course_is_thinned_and_keeps_its_ends(folder, clock):
    with announce(folder) as announcement:
        for number in range(5 * MOST_POINTS):
            clock.now_s += 1
            announcement.tell(0.1, "soaking", step_s=float(number))
        course = list_running(folder)[0].course
    assert MOST_POINTS / 2 - 1 <= len(course) <= MOST_POINTS
    assert course[0] == (1.0, 0.0)
    assert course[-1] == (5.0 * MOST_POINTS, 5.0 * MOST_POINTS - 1)
    assert [at for at, _ in course] == sorted(at for at, _ in course)


@pytest.mark.parametrize(("told", "shown"), [(-1.0, 0.0), (7.0, 1.0), (None, None)])
def test_a_share_is_one_of_the_whole(folder, told, shown):
    with announce(folder) as announcement:
        announcement.tell(told, "measuring")
        assert list_running(folder)[0].share == shown


def test_a_store_that_was_made_for_it_goes_with_it(tmp_path):
    folder = tmp_path / "store"
    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        assert (folder / ".gitignore").read_text() == "*\n"
    assert not folder.exists()
    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        Store.open(folder)
    assert (folder / "runs.db").exists()
    assert (folder / ".gitignore").exists()


def test_who_is_told_nothing_leaves_no_trace(tmp_path):
    with announce(tmp_path / "store"):
        pass
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("obstacle", ["a file", "a file in its place"])
def test_where_nothing_can_be_written_the_run_goes_on(tmp_path, obstacle):
    folder = tmp_path / "store"
    if obstacle == "a file":
        folder.write_text("not a folder")
    else:
        folder.mkdir()
        (folder / "running").write_text("not a folder")
    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        announcement.tell(0.2, "tracing")
    assert list_running(folder) == []


def test_names_that_are_not_utf_8_stop_no_run(folder):
    with announce(folder, target="caf\udce9.py:work") as announcement:
        announcement.tell(0.1, "caf\udce9")
        (one,) = list_running(folder)
    assert (one.target, one.stage) == ("caf?.py:work", "caf?")


def test_two_runs_are_listed_the_newest_first_and_end_apart(folder):
    with announce(folder, target="one") as announcement:
        announcement.tell(0.1, "measuring")
        time.sleep(0.01)
        with announce(folder, target="two") as two:
            two.tell(0.1, "measuring")
            assert [run.target for run in list_running(folder)] == ["two", "one"]
        assert [run.target for run in list_running(folder)] == ["one"]


WRITER = """
import sys, time
from pyrometer.store.running import Announcement
with Announcement(sys.argv[1], kind="bench", target="killed") as announcement:
    announcement.tell(0.5, "measuring")
    print("told", flush=True)
    while True:
        time.sleep(0.5)
        announcement.tell(0.5, "measuring")
"""


def writer(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "told\n"
    return process


def test_a_run_that_was_killed_is_not_listed_and_its_file_goes(folder):
    with writer(folder) as process:
        assert [run.target for run in list_running(folder)] == ["killed"]
        process.send_signal(signal.SIGKILL)
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert list_running(folder) == []  # though nobody has waited for it yet
    assert files(folder) == []


def test_the_next_run_clears_up_after_one_that_was_killed(folder):
    with writer(folder) as process:
        process.kill()
    left = files(folder)
    assert len(left) == 1
    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        assert left[0] not in files(folder)


def changed(folder: Path, **changes) -> Path:
    """A file as a run wrote it, but for some fields."""
    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        (one,) = list_running(folder)
    path = folder / "running" / "left.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**json.loads(to_json(one)), **changes}))
    return path


def test_a_process_that_got_the_same_number_is_another(folder):
    path = changed(folder, process_started_s=1.0)
    assert list_running(folder) == []
    assert not path.exists()


@pytest.mark.parametrize("pid", [-1, 0, 2**31, 2**70])
def test_a_number_that_is_no_process_is_none(folder, pid):
    changed(folder, pid=pid)
    assert list_running(folder) == []


def test_a_run_of_another_machine_is_believed_while_it_speaks(folder):
    path = changed(folder, machine="elsewhere", pid=2**30)
    assert len(list_running(folder)) == 1
    long_ago = time.time() - SILENT_S - 1
    os.utime(path, (long_ago, long_ago))
    assert list_running(folder) == []
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_what_cannot_be_read_is_passed_over_and_removed_in_time(folder, content):
    path = changed(folder)
    path.write_bytes(content)
    assert list_running(folder) == []
    assert path.exists()  # it may be of a later version
    long_ago = time.time() - SILENT_S - 1
    os.utime(path, (long_ago, long_ago))
    assert list_running(folder) == []
    assert not path.exists()


def test_a_date_that_is_none_is_passed_over(folder):
    changed(folder, started_at="yesterday")
    assert list_running(folder) == []


def test_half_a_file_of_a_killed_writer_goes_in_time(folder):
    half = changed(folder).with_name(".x.json.1.partial")
    half.write_text("{")
    list_running(folder)
    assert half.exists()
    os.utime(half, (1, 1))
    list_running(folder)
    assert not half.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_child_does_not_end_the_run_of_its_parent(folder):
    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        child = subprocess.run(
            [sys.executable, "-c", FORKING, folder], capture_output=True, text=True, check=False, timeout=60
        )
        assert child.stdout == "1\n", child.stderr


FORKING = """
import os, sys
from pyrometer.store.running import Announcement, list_running
with Announcement(sys.argv[1], kind="bench", target="parent") as announcement:
    announcement.tell(0.1, "measuring")
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print(len([one for one in list_running(sys.argv[1]) if one.target == "parent"]))
"""


def test_telling_costs_next_to_nothing_between_two_writes(folder):
    """As a ratio: a call that is not written, against one block of the shortest steps that are timed together."""
    from pyrometer.bench.sampling import BLOCK_S

    with announce(folder) as announcement:
        announcement.tell(0.1, "measuring")
        start = time.thread_time()
        for _ in range(1000):
            announcement.tell(0.1, "measuring", num_samples=1, step_s=0.001)
        each_s = (time.thread_time() - start) / 1000
    assert each_s < BLOCK_S / 100
