"""Running a program in a fresh process with other environment variables, to see what they do to its memory."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from pyrometer.errors import InputError, UserProgramError
from pyrometer.memory.process.growth import EnvironmentTrial
from pyrometer.quantity import Bytes, Seconds, format_seconds

ONEDNN_CACHES_OFF = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0", "LRU_CACHE_CAPACITY": "1"}
"""oneDNN keeps a compiled primitive, with its scratch memory, for each shape; torch keeps another cache of them."""

RETENTION_OFF = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""The C library then maps each large block on its own and gives it back when it is freed."""

# A child's peak begins at that of the process it was forked from, here gigabytes; so a small process forks it.
_LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(child.returncode, usage.ru_maxrss)
"""


def try_environment(
    command: Sequence[str],
    environment: Mapping[str, str] = ONEDNN_CACHES_OFF,
    *,
    timeout_s: Seconds | None = None,
) -> EnvironmentTrial:
    """Run a command twice, as it is and with environment variables, and compare the peaks of resident memory.

    The peak is the kernel's own figure for the ended process. The program's output is discarded.

    Args:
        command: program and arguments; it must end by itself and do the same work each time.
        environment: variables of the second run.
        timeout_s: for each run.

    Raises:
        InputError: the command is empty or its program is not there.
        UserProgramError: a run failed or took too long.
    """
    if not command:
        raise InputError(
            "command: it is empty; give a program with its arguments, such as ['python', 'train.py']"
        )
    if shutil.which(command[0]) is None:
        raise InputError(
            f"command: there is no program {command[0]!r}; give one that is in PATH, or its whole path"
        )
    return EnvironmentTrial(
        command=list(command),
        environment=dict(environment),
        peak_bytes=_peak_of(command, {}, timeout_s),
        peak_with_bytes=_peak_of(command, environment, timeout_s),
    )


def command_with(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """A line for a shell.

    >>> command_with(["python", "my train.py"], {"LRU_CACHE_CAPACITY": "1"})
    "LRU_CACHE_CAPACITY=1 python 'my train.py'"
    """
    settings = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
    return " ".join([*settings, shlex.join(command)])


def _peak_of(command: Sequence[str], environment: Mapping[str, str], timeout_s: Seconds | None) -> Bytes:
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    # A session of its own, so that the launcher and whatever the program started can be ended together.
    with subprocess.Popen(  # noqa: S603 - the user's own command
        launcher, env={**os.environ, **environment}, stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        try:
            answer, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            late = f"{shlex.join(command)} took longer than {format_seconds(timeout_s)} and was ended"
            raise UserProgramError(late) from None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
    status, peak = map(int, answer.split() or (child.returncode, 0))
    if status:
        raise UserProgramError(f"{shlex.join(command)} ended with {status}; run it alone to see why")
    # ru_maxrss counts kilobytes, but bytes on macOS.
    return peak * (1 if sys.platform == "darwin" else 1024)
