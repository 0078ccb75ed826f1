from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pyrometer.errors import InputError, UserProgramError
from pyrometer.workload.failure import described, first_line, user_code
from pyrometer.workload.output import SHOWN_LINES, stdout_to_stderr


def raised(function):
    try:
        function()
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("\n  first \nsecond"), "first"),
        (ValueError(), "(no message)"),
        (KeyError("x"), "'x'"),
        (SyntaxError("bad", ("f.py", 3, 1, "x")), "bad"),
    ],
)
def test_first_line(error, line):
    assert first_line(error) == line


def test_the_place_is_the_users_own_innermost_frame():
    error = raised(lambda: json.loads("{"))
    line = error.__traceback__.tb_next.tb_lineno
    assert described(error).endswith(f"(tests/workload/test_failure.py:{line})")
    assert described(ValueError("never raised")) == "ValueError: never raised"
    assert (
        described(SyntaxError("bad", ("/elsewhere/f.py", 3, 1, "x")))
        == "SyntaxError: bad (/elsewhere/f.py:3)"
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_interrupts_and_our_own_errors_pass(error):
    with pytest.raises(error, match="as it is"), user_code("the factory"):
        raise error("as it is")


@pytest.mark.parametrize(
    "error", [StopIteration("x"), SystemExit("x"), RuntimeError("x"), AssertionError("x")]
)
def test_anything_else_is_the_users_failure(error):
    with (
        pytest.raises(UserProgramError, match=f"the factory raised {type(error).__name__}: x") as caught,
        user_code("the factory"),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_what_c_code_has_buffered_goes_to_stderr_too():
    code = (
        "import ctypes\nfrom pyrometer.workload.output import stdout_to_stderr\n"
        "with stdout_to_stderr(): ctypes.CDLL(None).puts(b'from C')\n"
        "print('document')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert (done.stdout, done.stderr) == ("document\n", "from C\n")


def test_stdout_may_be_closed():
    code = (
        "from pyrometer.workload.output import stdout_to_stderr\nwith stdout_to_stderr(): print('to stderr')"
    )
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" >&-', sys.executable, code], capture_output=True, text=True, check=True
    )
    assert done.stderr == "to stderr\n"


def test_of_what_a_program_prints_in_each_step_the_first_lines_are_shown(capsys):
    with stdout_to_stderr():
        for step in range(SHOWN_LINES + 60):
            with stdout_to_stderr():
                print("step", step)
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert lines[0] == "step 0"
    assert lines[-1] == "… and 60 more lines that the program printed"
    assert len(lines) == SHOWN_LINES + 1
