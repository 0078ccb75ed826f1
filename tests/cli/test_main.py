"""The command line as a whole: help, start-up, errors in one line, exit codes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from pyrometer.cli.main import VERBS, Verbs, cli, main

MOST_FLAGS = {"bench": 13, "serve": 13, "tune": 20}
"""Of `tune`: goals, what may be tried and where, and what to do with a recipe; twelve elsewhere."""

LIKE_RUFF = 23
"""Of `lint`: who comes from ruff finds the flags of its `check` by their names, and editors and CI pass them per call."""


def verb(name: str) -> click.Command:
    command = Verbs().get_command(click.Context(cli), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself_within_twelve_flags(name):
    command = verb(name)
    flags = [p for p in command.params if isinstance(p, click.Option) and p.name not in {"help", "full"}]
    assert len(flags) <= (LIKE_RUFF if name == "lint" else MOST_FLAGS.get(name, 12))
    assert all(flag.help for flag in flags)
    assert command.help


def test_it_runs_as_a_module_where_the_script_is_not_on_the_path():
    done = subprocess.run(
        [sys.executable, "-m", "pyrometer", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("pyrometer, version")


def test_help_costs_little_more_than_python_itself():
    """A ratio, since absolute times mean nothing on a busy machine: importing torch alone is some thirty times Python."""

    def best(code):
        import time

        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    helping = "from pyrometer.cli.main import main; main(['--help'])"
    assert best(helping) < 10 * best("pass")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["bench", "no_such.py:work"], 2, "error: no_such.py:work: there is no file no_such.py"),
        (["bench"], 2, "error: Missing argument 'TARGET'; see `pyrometer bench --help`\n"),
        (["compare", "last"], 2, "error: Missing argument 'B'; see `pyrometer compare --help`\n"),
        (["benhc", "x"], 2, "No such verb 'benhc'; did you mean 'bench'?"),
        (["bench", "json:dumps", "--margin", "1%"], 2, "error: --margin goes with --vs TARGET"),
        (
            ["bench", "a.py:b", "--vs", "c.py:d", "--soak", "1s"],
            2,
            "error: --vs and --soak exclude each other",
        ),
        (["bench", "a.py:b", "--budget", "soon"], 2, "soon"),
        (["check", "no_such.py"], 2, "error: no_such.py"),
        (["calibrate", "--device", "cuda:99"], 2, "error: device cuda:99: cannot be used here"),
        (["calibrate", "--device", "toaster"], 2, "error: device toaster: cannot be used here"),
        (["check", "weights.pt"], 2, "error: weights.pt: not a target"),
    ],
)
def test_wrong_use_is_one_line(arguments, code, said, call, tmp_path):
    done = call(tmp_path, *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [("--debug", "bench"), ("bench", "--debug")])
def test_debug_shows_the_traceback(arguments, call, tmp_path):
    done = call(tmp_path, *arguments, "no_such.py:work")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("error: ")


@pytest.mark.exhaustive
def test_the_exit_code_is_that_of_the_process(tmp_path):
    code = "from pyrometer.cli.main import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", "last"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr == "error: Missing argument 'B'; see `pyrometer compare --help`\n"
    assert done.stdout == ""


def test_a_fault_of_our_own_is_one_line_too(monkeypatch, capsys):
    def breaks(*_arguments, **_options):
        raise RuntimeError("boom")

    monkeypatch.setattr(cli, "main", breaks)
    assert main(["runs"]) == 2
    assert (
        capsys.readouterr().err
        == "error: internal fault, RuntimeError: boom; `pyrometer --debug …` shows where, please report it\n"
    )


def test_a_closed_pipe_is_not_an_error(tmp_path):
    code = "import sys; from pyrometer.cli.main import main; sys.exit(main(['rule']))"
    done = subprocess.run(
        f'"{sys.executable}" -c "{code}" | head -c 1',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stderr == ""
