"""`observe`: the record, and what happens to the script and to us when a run does not go to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrometer.errors import InputError, TargetError
from pyrometer.record import from_json, to_json
from pyrometer.workload.script.observe import observe
from pyrometer.workload.script.observed import ObservedScript

from .conftest import SCRIPTS

OBSERVE = """
import signal, sys
# As in a terminal: what starts the tests may ignore some of these (nohup, a shell's background job).
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
from pyrometer.record import to_json
from pyrometer.workload.script.observe import observe
timeout_s = float(sys.argv[2]) if sys.argv[2] else None
record = observe(sys.argv[3:], timeout_s=timeout_s)
open(sys.argv[1], "wb").write(to_json(record))
"""


@pytest.fixture
def observe_apart(
    tmp_path: Path,
) -> Callable[..., tuple[subprocess.Popen[bytes], Callable[[], dict[str, Any]]]]:
    """Start `observe` in a process and a process group of its own, as a shell would."""

    def start(script: str, *args: str, timeout_s: str = "") -> Any:
        record = tmp_path / "record.json"
        process = subprocess.Popen(
            [sys.executable, "-c", OBSERVE, str(record), timeout_s, str(SCRIPTS / script), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=tmp_path,
        )

        def finish() -> dict[str, Any]:
            _, stderr = process.communicate(timeout=60)
            assert process.returncode == 0, stderr
            return json.loads(record.read_bytes())

        return process, finish

    return start


@pytest.mark.slow
def test_a_training_script_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = observe([str(SCRIPTS / "train.py"), "--epochs", "2"])
    assert record.exit_code == 0
    assert record.steps_from == "optimizer steps"
    assert len(record.step_ns) == len(record.step_start_ns) == len(record.regular) == 12
    assert [sum(parts) for parts in zip(*record.phase_ns.values(), strict=True)] == record.step_ns
    assert list(record.phase_ns) == ["data", "forward", "backward", "optimizer", "rest"]
    assert record.first_step_s == pytest.approx(record.step_ns[0] * 1e-9)
    assert record.import_s is not None
    assert 0 < record.import_s < record.outside_steps_s < record.wall_s
    assert record.step_start_ns[0] * 1e-9 > record.import_s
    assert record.peak_bytes is not None
    assert record.memory_bytes
    assert max(record.memory_bytes) <= record.peak_bytes
    assert record.compile_s == 0
    assert record.overhead_share is not None
    assert 0 < record.overhead_share < 1
    assert record.notes == []
    assert from_json(ObservedScript, to_json(record)) == record


@pytest.mark.parametrize(
    ("command", "exit_code", "note"),
    [
        (("silent.py",), 0, "never imported torch"),
        (("exits.py", "code", "3"), 3, "never imported torch"),
        (("exits.py", "os"), 7, "not shut down in order"),
        (("exits.py", "signal", "9"), -9, "not shut down in order"),
        (("wrong_syntax.py",), 1, "never imported torch"),
        (("forks.py",), 0, "never imported torch"),
        (("replaces.py",), 6, "not shut down in order"),
    ],
)
def test_what_was_not_seen_is_said(
    command: tuple[str, ...], exit_code: int, note: str, capfd: pytest.CaptureFixture[str]
) -> None:
    record = observe([str(SCRIPTS / command[0]), *command[1:]])
    assert record.exit_code == exit_code
    assert record.steps_from == "nothing"
    assert record.step_ns == []
    assert any(note in each for each in record.notes), record.notes


@pytest.mark.exhaustive
def test_a_script_that_calls_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    record = observe([str(SCRIPTS / "imports_only.py")])
    assert record.notes == [
        "no steps: the script never called a module, an optimizer or a DataLoader in its main thread"
    ]


def test_ctrl_c_is_the_scripts_business(observe_apart: Callable[..., Any]) -> None:
    process, finish = observe_apart("interrupted.py")
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == b"interrupted\n"
    record = finish()
    assert record["exit_code"] == 9
    assert record["interrupted"] is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_passed_on(number: int, observe_apart: Callable[..., Any]) -> None:
    process, finish = observe_apart("interrupted.py")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    record = finish()
    assert record["exit_code"] == -number
    assert record["interrupted"] is False


def test_time_that_is_up_ends_the_script(observe_apart: Callable[..., Any]) -> None:
    _, finish = observe_apart("interrupted.py", timeout_s="0.5")
    record = finish()
    assert record["timed_out"] is True
    assert record["exit_code"] == -signal.SIGTERM
    assert "its time was up" in record["notes"][0]


def test_our_own_signal_handlers_are_put_back(capfd: pytest.CaptureFixture[str]) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    observe([str(SCRIPTS / "silent.py")])
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _path: None, "no such file"),
        (lambda path: path.mkdir(), "not a file"),
        (lambda path: path.write_bytes(b"PK\x03\x04\x00\x00"), "binary data"),
    ],
)
def test_what_is_no_script_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path / "script.py")
    with pytest.raises(TargetError, match=message) as caught:
        observe([str(tmp_path / "script.py")])
    assert "\n" not in str(caught.value)


def test_no_script_and_no_python_are_refused() -> None:
    with pytest.raises(TargetError, match="no script"):
        observe([])
    with pytest.raises(InputError, match="cannot be started"):
        observe([str(SCRIPTS / "silent.py")], python="/nowhere/python")


def test_a_python_that_cannot_be_observed_still_runs_the_script(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    isolated = tmp_path / "python"
    isolated.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    isolated.chmod(0o755)
    record = observe([str(SCRIPTS / "exits.py"), "code", "3"], python=str(isolated))
    assert record.exit_code == 3
    assert "nothing was observed: this Python ignores PYTHONPATH" in record.notes[0]
    assert capfd.readouterr().out == "before code\n"


def test_the_users_own_sitecustomize_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('customised')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    observe([str(SCRIPTS / "exits.py"), "none"])
    assert capfd.readouterr().out == "customised\nbefore none\n"
