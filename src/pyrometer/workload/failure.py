"""When the user's own program fails: one line that says what was raised and where."""

from __future__ import annotations

import contextlib
import re
import signal
import traceback
from collections.abc import Iterator

from pyrometer.errors import PyrometerError, UserProgramError
from pyrometer.source.ownership import owner_of
from pyrometer.text import shown_path

_STEP = re.compile(r"step (\d+) raised (\w+)")
_PLACE = re.compile(r" \([^()]+:\d+\)$")


@contextlib.contextmanager
def user_code(what: str) -> Iterator[None]:
    """Turn an exception of the user's program into a `UserProgramError` that says where it happened.

    `SystemExit` counts as a failure too. Our own errors and `KeyboardInterrupt` pass unchanged.

    >>> with user_code("the factory"):
    ...     raise ValueError("no such split")
    Traceback (most recent call last):
    pyrometer.errors.UserProgramError: the factory raised ValueError: no such split
    """
    try:
        yield
    except PyrometerError:
        raise
    except (Exception, SystemExit) as error:
        raise UserProgramError(f"{what} raised {described(error)}") from error


def described(error: BaseException) -> str:
    """An exception in one line: its type, its text, and the user's file and line that raised it."""
    place = user_place(error)
    return f"{type(error).__name__}: {first_line(error)}" + (f" ({place})" if place else "")


def headline(failure: str) -> str:
    """Where a program failed and with what, without its text, which stands beside it.

    >>> headline("step 3 raised ValueError: bad sample (train.py:40)"), headline("the script ended with exit code 1")
    ('failed in step 3: ValueError (train.py:40)', 'failed: the script ended with exit code 1')
    """
    step = _STEP.match(failure)
    if step is None:
        return f"failed: {failure}"
    place = _PLACE.search(failure)
    return f"failed in step {step[1]}: {step[2]}{place[0] if place else ''}"


def first_line(error: BaseException) -> str:
    r"""The first non-empty line of an exception's text.

    >>> first_line(ValueError("too short\nsee above"))
    'too short'
    """
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "(no message)"


def signal_name(number: int) -> str:
    """The name of a signal; real-time signals have none.

    >>> signal_name(9), signal_name(40)
    ('SIGKILL', 'signal 40')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def user_place(error: BaseException) -> str | None:
    """`file:line` of the innermost frame that is the user's; `None` when the user's code is not on the stack.

    Code under the working directory's environment or the standard library is not the user's, unless nothing else is
    there (a target that is itself an installed package).
    """
    if isinstance(error, SyntaxError) and error.filename:
        return _place(error.filename, error.lineno)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and owner_of(frame.filename) not in {"ours", "generated"}
    ]
    own = [frame for frame in frames if owner_of(frame.filename) == "user"]
    return _place((own or frames)[-1].filename, (own or frames)[-1].lineno) if frames else None


def _place(filename: str, line: int | None) -> str:
    shown = shown_path(filename)
    return f"{shown}:{line}" if line is not None else shown
