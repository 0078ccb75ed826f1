"""Keeping the user's prints out of a machine-readable document on stdout, and torch's tracebacks off the screen."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
from collections.abc import Iterator

_STDOUT, _STDERR = 1, 2


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything that is written to stdout to stderr: Python's prints, C code's, and those of child processes."""
    if sys.stdout is not None:  # as it is when the process was started with stdout closed
        sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        if _is_open(_STDOUT) and _is_open(_STDERR):
            stack.callback(_restore_stdout, os.dup(_STDOUT))
            os.dup2(_STDERR, _STDOUT)
        with contextlib.redirect_stdout(sys.stderr):
            yield


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
