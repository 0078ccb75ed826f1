"""What a newcomer gets wrong, and what the machine refuses: one line, before any time is spent on measuring."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from pyrometer.cli.main import main

MODEL = """
import itertools, time, torch
import pyrometer as pm

def never():
    raise AssertionError("loaded although the flags cannot be used")

def interrupted():
    calls = itertools.count()
    def step():
        time.sleep(0.001)
        if next(calls) > 300:
            raise KeyboardInterrupt
    return pm.Call(step)
"""

NAMES = "model.py: it defines things and runs none of them; name what to run: model.py:interrupted"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "file").write_text("{}")
    (tmp_path / "broken.pt2").write_bytes(b"no zip")
    (tmp_path / "gone.json").symlink_to("/proc/self/mem")  # opens for everyone, and reads for no one
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("chek model.py:never", "No such verb 'chek'; did you mean 'check'?"),
        ("xyzzy", "legal are check, bench"),
        ("check model.py", NAMES),
        ("audit model.py", NAMES),
        ("bench model.py", NAMES),
        ("memory model.py", NAMES),
        ("compile model.py", NAMES),
        ("trace model.py", NAMES),
        ("compile model.py:never --diff gone.json", "gone.json: cannot be read: "),
        ("memory model.py:never --diff gone.json", "gone.json: cannot be read: "),
        ("compile model.py:never --diff file", "name what pyrometer compile --json printed"),
        ("compile model.py:never --diff nope --no-store", "no such file, and with --no-store"),
        ("compile model.py:never --export file/graphs", "file/graphs: cannot be written (Not a directory)"),
        (
            "compile model.py:never --shapes nope",
            "nope: cannot be read (No such file or directory); legal is",
        ),
        ("memory model.py:never --predict device=nope", "device: got 'nope'; legal are cpu, cuda"),
        ("memory model.py:never --plan 1GiB --budget 0s", "budget: got 0.0; legal is above 0 s"),
        ("serve model.py:never --plan poisson:0", "--plan poisson:0: legal is a rate per second above 0"),
        ("serve model.py:never --plan absent.csv", "absent.csv: cannot be read"),
        ("calibrate model.py:never --budget 0s", "--budget: got 0 s; legal is above 0 s"),
        ("bench broken.pt2", "broken.pt2: not an exported program"),
        ("runs --kind nope", "'nope' is not one of 'audit', 'bench'"),
        ("ui --store file --no-open", "--store file: is a file"),
    ],
)
def test_it_is_told_in_one_line(words, said, capfd):
    assert main(words.split()) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert said in captured.err


def test_a_target_that_cannot_be_opened_is_no_fault_of_its_code(monkeypatch, capsys):
    Path("locked.py").touch()
    opened = Path.open

    def refuse(path, *args, **options):
        if path.name == "locked.py":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert main(["bench", "locked.py:never", "--no-store"]) == 2
    assert capsys.readouterr().err == "error: locked.py:never: cannot be read: Permission denied\n"


def test_a_logger_is_quiet_only_while_a_program_is_read():
    before = logging.getLogger("torch.export").disabled
    assert main(["bench", "broken.pt2"]) == 2
    assert logging.getLogger("torch.export").disabled is before


def test_a_full_disk_is_no_fault_of_ours(monkeypatch, capsys):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyrometer.cli.rule.print_view", full)
    assert main(["rule", "PYR101"]) == 2
    text = "error: stdout: cannot be written: No space left on device; free some space\n"
    assert capsys.readouterr().err == text


def test_a_closed_stdout_takes_no_view(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    assert main(["rule", "PYR101"]) == 0
    assert capsys.readouterr().err == ""


def test_a_script_that_failed_before_a_step_keeps_its_exit_code(project, capfd):
    (project / "fails.py").write_text("import sys; sys.exit(7)")
    assert main(["trace", "fails.py", "--no-store"]) == 7
    assert capfd.readouterr().err == "note: no steps: the script never imported torch\n"


def test_ctrl_c_ends_a_calibration(capsys):
    assert main(["calibrate", "model.py:interrupted", "--budget", "3s", "--no-peaks", "--no-store"]) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip() == "interrupted"
