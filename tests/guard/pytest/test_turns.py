"""Who runs beside whom: workers as threads with files of their own, and workers of pytest-xdist."""

from __future__ import annotations

import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from pyrometer.guard.pytest.turns import Turns, remove_turns


@pytest.fixture(autouse=True)
def one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def workers(tmp_path):
    """Three workers of one session; files opened apart lock each other out within one process, too."""
    made = [Turns("session", tmp_path) for _ in range(3)]
    yield made
    for one in made:
        one.close()


def test_those_who_do_not_measure_run_side_by_side(workers):
    with workers[0].beside_others(), workers[1].beside_others(), workers[2].beside_others():
        pass


def test_who_measures_waits_for_the_others_and_holds_up_those_who_come_later(workers):
    log: queue.Queue[str] = queue.Queue()
    ended, waits = threading.Event(), threading.Event()

    def measures():
        waits.set()
        with workers[1].alone():
            log.put("alone")

    def comes_later():
        with workers[2].beside_others():
            log.put("later")

    with ThreadPoolExecutor(2) as pool:
        with workers[0].beside_others():
            first = pool.submit(measures)
            waits.wait()
            assert not first.done()
            log.put("first")
            ended.set()
        first.result()
        pool.submit(comes_later).result()
    assert [log.get() for _ in range(3)] == ["first", "alone", "later"]


def test_two_that_want_to_be_alone_while_they_are_beside_each_other_do_not_wait_for_ever(workers):
    inside, most = [], []

    def work(turns):
        with turns.beside_others():
            both.wait()
            with turns.alone():
                inside.append(turns)
                most.append(len(inside))
                inside.remove(turns)

    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, turns) for turns in workers[:2]]:
            done.result()
    assert most == [1, 1]


def test_an_exception_lets_go(workers):
    for enter in (Turns.alone, Turns.beside_others):
        with pytest.raises(ValueError), enter(workers[0]):
            raise ValueError
    with workers[1].alone():
        pass


def test_files_are_removed(tmp_path, workers):
    assert len(list(tmp_path.iterdir())) == 2
    remove_turns("session", tmp_path)
    assert list(tmp_path.iterdir()) == []


SUITE = """
import os, pathlib, time

log = pathlib.Path(__file__).with_name("log.txt")

def stretch(kind):
    start = time.monotonic()
    torch.randn(200, 200).matmul(torch.randn(200, 200))
    with log.open("a") as file:
        file.write(f"{kind} {start} {time.monotonic()}\\n")
    return torch.ones(3).exp()

@pytest.mark.parametrize("number", range(4))
def test_measures(pyrometer, number):
    pyrometer.measure(lambda: stretch("alone"), budget_s=0.1)
    pyrometer.no_graph_retained(lambda: torch.ones(3).exp())

@pytest.mark.parametrize("number", range(8))
def test_other(number):
    for _ in range(10):
        stretch("other")

def test_asks_late(request):
    request.getfixturevalue("pyrometer").measure(lambda: stretch("alone"), budget_s=0.1)
"""


@pytest.mark.slow
def test_workers_measure_one_after_the_other_and_beside_nobody(run_suite, pytester):
    done = run_suite(SUITE, "-n", "2", "--pyrometer-json=out.json", apart=True)
    done.assert_outcomes(passed=13)
    report = json.loads((pytester.path / "out.json").read_text())
    assert len(report["items"]) == 5
    assert len({item["worker"] for item in report["items"]}) > 1
    assert len(report["environments"]) == 1
    lines = [line.split() for line in (pytester.path / "log.txt").read_text().splitlines()]
    alone = [(float(start), float(end)) for kind, start, end in lines if kind == "alone"]
    other = [(float(start), float(end)) for kind, start, end in lines if kind == "other"]
    assert alone
    assert len(other) == 80
    by_start = sorted(alone)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(by_start))
    overlapping = [(one, two) for one in alone for two in other if one[0] < two[1] and two[0] < one[1]]
    assert overlapping == []


@pytest.mark.slow
@pytest.mark.exhaustive  # the operating system lets go of what a dead process held
def test_a_worker_that_dies_while_it_measures_holds_nobody_up_and_files_are_gone(
    run_suite, pytester, monkeypatch, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("locks")
    monkeypatch.setenv("TMPDIR", str(folder))
    text = """
import os

def test_dies(pyrometer):
    pyrometer.measure(lambda: os._exit(3), budget_s=1)

@pytest.mark.parametrize("number", range(4))
def test_lives(pyrometer, number):
    pyrometer.no_sync_in_step(lambda: torch.ones(3).exp())

def test_broken(pyrometer):
    pyrometer.no_sync_in_step(lambda: torch.ones(3).sum().item())
"""
    done = run_suite(text, "-n", "2", "--pyrometer-json=out.json", apart=True)
    done.assert_outcomes(passed=4, failed=2)
    report = json.loads((pytester.path / "out.json").read_text())
    assert {item["nodeid"] for item in report["items"]} == {
        "test_suite.py::test_broken",
        *(f"test_suite.py::test_lives[{number}]" for number in range(4)),
    }
    done.stdout.fnmatch_lines(
        [
            "*no_sync_in_step broken*",
            "*- pyrometer -*",
            "5 contracts: 4 kept, 1 broken; 0 measurements; written to out.json",
        ]
    )
    assert list(folder.glob("pyrometer-*")) == []
