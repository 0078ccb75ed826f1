"""Keeping the user's prints out of a machine-readable document on stdout, and torch's tracebacks off the screen."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

_STDOUT, _STDERR = 1, 2


SHOWN_LINES = 40
"""Of what a program prints in steps that are repeated a thousand times."""


class FirstLines:
    r"""A stream that passes the first lines on, and counts the others; everything else is the stream's own.

    >>> import io
    >>> stream = io.StringIO()
    >>> first = FirstLines(stream, 2)
    >>> for step in range(5):
    ...     print("step", step, file=first)
    >>> stream.getvalue(), first.num_dropped
    ('step 0\nstep 1\n', 3)
    """

    def __init__(self, stream: TextIO, num_lines: int = SHOWN_LINES) -> None:
        self._stream = stream
        self._left = num_lines
        self.num_dropped = 0
        """Lines that were not passed on."""

    def write(self, text: str) -> int:
        """Take some text; its length."""
        if self._left <= 0:
            self.num_dropped += text.count("\n")
            return len(text)
        lines = text.splitlines(keepends=True)
        passed = lines[: self._left]
        self._stream.write("".join(passed))
        self._left -= sum(line.endswith("\n") for line in passed)
        self.num_dropped += sum(line.endswith("\n") for line in lines[len(passed) :])
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Take several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything that is written to stdout to stderr: Python's prints, C code's, and those of child processes.

    Of Python's prints the first lines, and how many more there were.
    """
    if sys.stdout is not None:  # as it is when the process was started with stdout closed
        sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        if _is_open(_STDOUT) and _is_open(_STDERR):
            stack.callback(_restore_stdout, os.dup(_STDOUT))
            os.dup2(_STDERR, _STDOUT)
        outer = isinstance(sys.stdout, FirstLines)
        first = sys.stdout if outer else FirstLines(sys.stderr)
        with contextlib.redirect_stdout(cast("TextIO", first)):
            try:
                yield
            finally:
                if not outer and isinstance(first, FirstLines) and first.num_dropped:
                    sys.stderr.write(f"… and {first.num_dropped:,} more lines that the program printed\n")


@contextlib.contextmanager
def without_log(name: str) -> Iterator[None]:
    """Keep a logger quiet: torch logs the traceback of a failure that we tell in one line."""
    logger = logging.getLogger(name)
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was


def _restore_stdout(kept: int) -> None:
    # C's own buffer would otherwise be written at exit, to the real stdout.
    ctypes.CDLL(None).fflush(None)
    os.dup2(kept, _STDOUT)
    os.close(kept)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
