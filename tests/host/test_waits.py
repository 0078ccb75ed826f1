"""What a step's time is while it waits for another thread of the program."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from threading import Event, Thread

import pytest
from host_programs import Program, samples

from pyrometer.host.build import build_profile
from pyrometer.workload.script.startup._pyrometer_inside.host_sampler import HostSampler

TEXT = """\
import hashlib
import threading
import time

arrived, ready = threading.Event(), threading.Event()

def ask():
    arrived.wait()

def answer(rows):
    for row in rows:
        hashlib.sha256(row)
    time.sleep(0.01)
    ready.wait()
    ready.wait(timeout=0.01)

def fill(box):
    while True:
        time.sleep(0.02)
        box.put(1)

def beat():
    while True:
        time.sleep(1.0)
"""

IN_WAIT = (Event.wait.__code__, 0)
"""The frame of the library in which a thread waits."""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "served.py", TEXT)


@pytest.fixture
def profile_of(program):
    """`profile_of((3, "time.sleep(0.01)"), …)`: the profile of ten ticks of waiting, with another thread at lines so often."""
    asked = [IN_WAIT, program.at("ask", "arrived.wait()")]

    def profile(*seen, **others):
        waits = [
            (
                times,
                asked,
                {7: [*([IN_WAIT] if part.startswith("ready") else []), program.at("answer", part)]}
                | {8: [program.at("beat", "sleep(1.0)")]},
            )
            for times, part in seen
        ]
        return build_profile(samples((10, asked), waits=waits))

    return profile


def spent(program, profile):
    return {line.where.line: line.own_s for line in profile.lines if line.own_s}


def test_the_time_is_that_of_the_thread_that_works_or_sleeps_on_its_own_accord(program, profile_of):
    profile = profile_of((6, "time.sleep(0.01)"), (4, "hashlib.sha256(row)"))
    assert spent(program, profile) == {
        program.line("time.sleep(0.01)"): pytest.approx(6e-3),
        program.line("hashlib.sha256(row)"): pytest.approx(4e-3),
    }
    assert {leaf.kind for leaf in profile.leaves} == {"sleep", "hash"}
    waiting = next(line for line in profile.lines if line.where.function == "ask")
    assert (waiting.own_s, waiting.total_s) == (0.0, pytest.approx(profile.step_s))
    assert [loop.over for loop in profile.loops] == ["rows"]


def test_a_wait_that_ends_by_itself_is_told_where_it_is_and_another_is_not(program, profile_of):
    timed, untimed, works = "ready.wait(timeout", "ready.wait()", "hashlib.sha256(row)"
    assert set(spent(program, profile_of((8, timed), (2, works)))) == {
        program.line(timed),
        program.line(works),
    }
    assert set(spent(program, profile_of((8, untimed), (2, works)))) == {program.line(works)}


def test_a_thread_that_only_sleeps_keeps_nobody_waiting(program):
    asked = [IN_WAIT, program.at("ask", "arrived.wait()")]
    beating = [(9, asked, {8: [program.at("beat", "sleep(1.0)")]})]
    profile = build_profile(samples((10, asked), waits=beating))
    assert spent(program, profile) == {program.line("arrived.wait()"): pytest.approx(profile.step_s)}
    assert profile.leaves[0].kind == "lock"


def test_a_thread_that_hands_something_on_may_be_what_is_waited_for_though_only_seen_to_sleep(program):
    asked = [IN_WAIT, program.at("ask", "arrived.wait()")]
    filling = [(9, asked, {9: [program.at("fill", "sleep(0.02)")], 8: [program.at("beat", "sleep(1.0)")]})]
    profile = build_profile(samples((10, asked), waits=filling))
    assert set(spent(program, profile)) == {program.line("sleep(0.02)")}


def test_while_a_thread_waits_the_others_are_looked_at_and_our_own_thread_ends():
    asked, begun = Event(), Event()
    reply: Future[int] = Future()

    def serve():
        begun.set()
        asked.wait()
        reply.set_result(1)

    worker = Thread(target=serve)
    worker.start()
    sampler = HostSampler(1e-3)
    sampler.open()
    sampler.begin()
    ticker = sampler._ticker
    try:
        begun.wait()
        while not sampler.waits:  # until it was seen to wait
            with pytest.raises(TimeoutError):
                reply.result(timeout=0.02)
    finally:
        asked.set()
        sampler.end()
        sampler.close()
        worker.join()
    assert ticker is not None
    assert not ticker.is_alive()
    others = {thread: [code.co_name for code in stack[::2]] for thread, stack in sampler.waits[0][1]}
    assert "serve" in others[worker.ident]
