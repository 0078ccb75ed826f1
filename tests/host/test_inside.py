"""What looks from inside of a process: it counts truly, and leaves everything as it was."""

from __future__ import annotations

import gc
import signal
import sys
import threading

import pytest
from host_programs import Program, watched

from pyrometer.workload.script.startup._pyrometer_inside import host_sampler
from pyrometer.workload.script.startup._pyrometer_inside.host_record import host_record
from pyrometer.workload.script.startup._pyrometer_inside.host_sampler import (
    LONGEST_INTERVAL_S,
    HostSampler,
    fitting_interval_s,
)
from pyrometer.workload.script.startup._pyrometer_inside.host_watch import HostWatch

TEXT = """\
import json

def inner(n):
    total = 0
    for i in range(n):
        total += i
    return total

def pieces(n):
    for i in range(n):
        yield i

def step():
    for _ in range(2):
        inner(5)
    list(pieces(4))
    return json.dumps([1])

def breaks():
    raise ValueError("mine")
"""


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path / "program.py", TEXT)


@pytest.fixture
def free_timer():
    """The timer as a program without one has it; what the tests themselves use it for waits meanwhile."""
    handler, timer = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *timer)


@pytest.mark.usefixtures("free_timer")
def test_the_timer_and_its_signal_are_given_back():
    callbacks = list(gc.callbacks)
    sampler = HostSampler(1e-3)
    assert sampler.by_timer
    sampler.open()
    sampler.begin()
    sampler.end()
    sampler.close()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert gc.callbacks == callbacks


@pytest.mark.usefixtures("free_timer")
def test_a_signal_that_the_user_handles_is_left_alone():
    def mine(_number, _frame):
        pass

    signal.signal(signal.SIGALRM, mine)
    sampler = HostSampler(1e-3)
    assert not sampler.by_timer
    sampler.open()
    sampler.close()
    assert signal.getsignal(signal.SIGALRM) is mine


@pytest.mark.usefixtures("free_timer")
def test_a_handler_that_was_set_meanwhile_stays():
    def mine(_number, _frame):
        pass

    sampler = HostSampler(1e-3)
    sampler.open()
    try:
        signal.signal(signal.SIGALRM, mine)
    finally:
        sampler.close()
    assert signal.getsignal(signal.SIGALRM) is mine


@pytest.mark.usefixtures("free_timer")
def test_a_program_that_takes_the_timer_has_it_for_itself():
    plain = (signal.signal, signal.setitimer, signal.alarm)
    sampler = HostSampler(1e-3)
    sampler.open()
    sampler.begin()
    signal.alarm(100)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 50
    assert not sampler.by_timer
    sampler.begin()
    sampler.end()
    sampler.close()
    assert signal.alarm(0) > 50
    assert (signal.signal, signal.setitimer, signal.alarm) == plain


@pytest.mark.usefixtures("free_timer")
def test_other_signals_of_the_program_change_nothing():
    sampler = HostSampler(1e-3)
    sampler.open()
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, before)
    assert sampler.by_timer
    sampler.close()


def test_other_threads_look_by_a_thread_of_their_own():
    by_timer = []
    thread = threading.Thread(target=lambda: by_timer.append(HostSampler(1e-3).by_timer))
    thread.start()
    thread.join()
    assert by_timer == [False]


def test_dear_looks_are_rare():
    assert fitting_interval_s(1_000) == pytest.approx(1e-3)
    assert fitting_interval_s(40_000) > 2e-3
    assert fitting_interval_s(1e9) == LONGEST_INTERVAL_S


def test_a_watch_counts_calls_and_how_lines_follow_each_other(program):
    watch = watched(program.module.step)
    codes = {code.co_name: key for key, code in watch.codes.items()}
    assert watch.complete
    assert watch.calls[codes["inner"]] == 2
    into_heading = sum(
        times
        for (code, before, line), times in watch.edges.items()
        if code == codes["inner"] and line == 5 and before == 6
    )
    assert into_heading == 10
    assert sys.gettrace() is None


def test_a_watch_ends_also_when_the_step_raises(program):
    with pytest.raises(ValueError, match="mine"):
        watched(program.module.breaks)
    assert sys.gettrace() is None


def test_a_watch_remembers_types(program):
    watch = watched(program.module.step)
    inner = next(key for key, code in watch.codes.items() if code.co_name == "inner")
    assert watch.types[inner]["total"] == "builtins.int"


def test_frames_that_ran_before_are_watched_and_let_go():
    def step():
        frame = sys._getframe()
        watch = HostWatch()
        watch.begin(frame)
        total = 0
        for i in range(3):
            total += i
        watch.end()
        return watch, frame.f_trace, frame.f_trace_opcodes

    watch, trace, opcodes = step()
    assert any(code.co_name == "step" for code in watch.codes.values())
    assert (trace, opcodes) == (None, False)


def test_a_record_holds_no_code_objects(program):
    import msgspec

    watch = watched(program.module.step)
    sampler = HostSampler(1e-3)
    code, at = program.at("step", "json.dumps")
    sampler.samples = [(3, False, [code, at])]
    record = host_record(sampler, watch, [3_000_000], [], [])
    assert msgspec.json.decode(msgspec.json.encode(record))["stacks"] == [[3, False, [0]]]
    assert record["places"][0][1].startswith("CALL")


def test_stretches_hold_what_runs_between_two_points(program):
    watch = watched(program.module.step)
    inner = next(code for code in watch.codes.values() if code.co_name == "inner")
    jump = program.at("inner", "total += i", "JUMP_BACKWARD")
    before = watch.stretches[(*jump, None, 0)]
    names = {list(inner.co_positions())[at // 2][0] for code, at in before if code is inner}
    assert names == {5, 6}


@pytest.mark.usefixtures("free_timer")
def test_the_timer_is_set_once_for_many_steps_and_ticks_between_them_do_not_count(monkeypatch):
    now, settings = [0], []
    monkeypatch.setattr(host_sampler, "perf_counter_ns", lambda: now[0])
    monkeypatch.setattr(host_sampler, "_setitimer", lambda _which, *times: settings.append(times))
    sampler = HostSampler(1e-3)
    sampler.open()
    for _ in range(5):
        sampler.begin()
        now[0] += 2_000_000  # two ticks
        sampler._on_signal(0, sys._getframe())
        sampler.end()
        now[0] += 7_000_000
        sampler._on_signal(0, sys._getframe())
    sampler.close()
    assert len(settings) == 2, "set and taken back"
    assert sum(spent_ns for spent_ns, *_ in sampler.samples) == 10_000_000
