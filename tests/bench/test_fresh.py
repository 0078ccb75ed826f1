"""Functions in fresh interpreters: what goes in, what comes out, and what is left when it goes wrong."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from pyrometer import errors
from pyrometer.bench.fresh import ChildTracebackError, run_fresh
from pyrometer.errors import PyrometerError, UserProgramError

PROBE = """
import os, signal, subprocess, sys, time
from pyrometer import errors
from pyrometer.record import Record

class Question(Record, frozen=True, kw_only=True):
    text: str = ""

class Answer(Record, frozen=True, kw_only=True):
    text: str

def answer(question: Question) -> Answer:
    print("chatter on stdout")
    return Answer(text=f"{question.text} in {os.getpid()}, torch {'torch' in sys.modules}, stdin {sys.stdin.read()!r}")

def complain(question: Question) -> Answer:
    kind, _, text = question.text.partition(":")
    raise getattr(errors, kind)(text)

def lack(question: Question) -> Answer:
    class ComposedError(errors.InputError):
        def __init__(self, module: str, purpose: str) -> None:
            super().__init__(f"{purpose} needs {module}")
    raise ComposedError("pynvml", "the GPU's clock")

def divide(question: Question) -> Answer:
    return Answer(text=str(1 // 0))

def signalled(question: Question) -> Answer:
    os.kill(os.getpid(), getattr(signal, question.text))
    time.sleep(60)

def leave(question: Question) -> Answer:
    os._exit(3)

def linger(question: Question) -> Answer:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(question.text, "w").write(f"{os.getpid()} {child.pid}")
    time.sleep(600)
"""


@pytest.fixture
def probe(tmp_path, monkeypatch):
    file = tmp_path / "fresh_probe.py"
    file.write_text(PROBE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec = importlib.util.spec_from_file_location("fresh_probe", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pids_in(file: Path, *, timeout_s: float = 30) -> list[int]:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if file.exists() and file.read_text().count(" "):
            return [int(pid) for pid in file.read_text().split()]
        time.sleep(0.02)
    raise AssertionError("the child never began")


def gone(pids: list[int], *, timeout_s: float = 20) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            return True
        time.sleep(0.02)
    return False


def test_a_record_comes_back_from_another_process_and_prints_stay_off_stdout(probe, capfd):
    text = run_fresh(probe.answer, probe.Question(text="hello")).text
    assert text.startswith("hello in ")
    assert str(os.getpid()) not in text
    assert text.endswith("torch False, stdin ''")
    out, err = capfd.readouterr()
    assert out == ""
    assert "chatter on stdout" in err


KINDS = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, PyrometerError)
]


def test_errors_come_back_as_what_they_were(probe):
    for kind in KINDS:
        with pytest.raises(getattr(errors, kind)) as caught:
            run_fresh(probe.complain, probe.Question(text=f"{kind}:batch: got 0; pass 1"))
        assert type(caught.value).__name__ == kind
        assert str(caught.value) == "batch: got 0; pass 1"
        assert isinstance(caught.value.__cause__, ChildTracebackError)
        assert "fresh_probe.py" in str(caught.value.__cause__)


def test_an_error_that_composes_its_text_keeps_it(probe):
    with pytest.raises(PyrometerError, match="the GPU's clock needs pynvml"):
        run_fresh(probe.lack, probe.Question())


def test_an_error_that_nobody_meant_is_one_line_with_its_place(probe):
    with pytest.raises(PyrometerError, match=r"raised ZeroDivisionError: .*fresh_probe.py:\d+"):
        run_fresh(probe.divide, probe.Question())


@pytest.mark.parametrize(
    ("name", "said"),
    [("SIGKILL", "SIGKILL.*ran out of memory"), ("SIGSEGV", "SIGSEGV"), ("SIGABRT", "SIGABRT")],
)
def test_a_signal_is_named(probe, name, said):
    with pytest.raises(UserProgramError, match=said):
        run_fresh(probe.signalled, probe.Question(text=name))


def test_a_program_that_leaves_is_noticed(probe):
    with pytest.raises(UserProgramError, match="exit code 3 before it had a result"):
        run_fresh(probe.leave, probe.Question())


def test_a_timeout_ends_the_child_and_what_it_started_but_nobody_else(probe, tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note = tmp_path / "pids"
    try:
        with pytest.raises(UserProgramError, match=r"longer than 2\.00 s and was ended"):
            run_fresh(probe.linger, probe.Question(text=str(note)), timeout_s=2)
        assert gone(pids_in(note))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


DRIVER = textwrap.dedent("""
    import sys
    import fresh_probe
    from pyrometer.bench.fresh import run_fresh
    run_fresh(fresh_probe.linger, fresh_probe.Question(text=sys.argv[1]))
""")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_its_parent(probe, tmp_path, number):
    """Ctrl-C ends everything; a killed parent takes the child with it."""
    note = tmp_path / "pids"
    parent = subprocess.Popen([sys.executable, "-c", DRIVER, str(note)], stderr=subprocess.DEVNULL)
    child, grandchild = pids_in(note)
    parent.send_signal(number)
    assert parent.wait(timeout=20) != 0
    assert gone([child])
    if number == signal.SIGINT:
        assert gone([grandchild])
    else:
        os.kill(grandchild, signal.SIGKILL)


def test_interrupting_this_very_process_leaves_no_child(probe, tmp_path):
    note = tmp_path / "pids"
    timer = threading.Thread(target=lambda: (pids_in(note), os.kill(os.getpid(), signal.SIGINT)))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run_fresh(probe.linger, probe.Question(text=str(note)))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert gone(pids_in(note))


def test_files_in_the_working_directory_do_not_shadow_the_library(probe, tmp_path, monkeypatch):
    """A user's `random.py` or `statistics.py` beside a model is ordinary."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tempfile.py").write_text("raise RuntimeError('shadowed')")
    monkeypatch.chdir(elsewhere)
    assert run_fresh(probe.answer, probe.Question(text="x")).text
