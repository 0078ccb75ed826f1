"""Where a process that may be traced and one that asks for it meet: a socket in a folder of the user's own."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Annotated

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc

LONGEST_ADDRESS = 100  # bytes of a socket's path; systems allow 104 or 108


class TraceOrder(Record, frozen=True, kw_only=True):
    """What one process asks of another."""

    path: Annotated[str, doc("where the profiler writes to; absolute, .json")]
    steps: Annotated[int | None, doc("steps to record; null when a time is given")] = None
    duration_s: Seconds | None = None
    patience_s: Annotated[Seconds, doc("give up when no step ends for so long")] = 10.0
    options: Annotated[dict[str, bool], doc("as torch.profiler.profile takes them")] = {}


class TraceAnswer(Record, frozen=True, kw_only=True):
    """What became of it."""

    error: Annotated[str | None, doc("null when the file is there")] = None
    steps_from: Annotated[str | None, doc("what a step was taken to be")] = None
    untraced_s: Annotated[list[Seconds], doc("steps before the profiler started")] = []
    traced_s: Annotated[list[Seconds], doc("steps that were recorded")] = []
    raw_bytes: Bytes = 0
    notes: list[str] = []


def own_folder() -> Path:
    """The folder for sockets of this user, made if need be.

    Raises:
        InputError: somebody else could write to it.
    """
    folder = candidate_folders()[0]
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        stat_result = folder.lstat()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; set XDG_RUNTIME_DIR to a folder"
        ) from error
    if (
        not stat.S_ISDIR(stat_result.st_mode)
        or stat_result.st_uid != os.getuid()
        or stat_result.st_mode & 0o077
    ):
        raise InputError(
            f"{folder}: must be a folder that only user {os.getuid()} can enter; remove it, or set XDG_RUNTIME_DIR"
        )
    return folder


def candidate_folders() -> list[Path]:
    """Where a process of this user may have put its socket; the first is where this one puts its own."""
    name = "pyrometer"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folders = [Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"]
    if runtime and len(os.fsencode(runtime)) < LONGEST_ADDRESS - 30 and os.access(runtime, os.W_OK):
        folders.insert(0, Path(runtime) / name)
    return folders


def address(folder: Path, pid: int) -> str:
    """The path of a process's socket."""
    return str(folder / f"{pid}.sock")


def sweep(folder: Path) -> None:
    """Remove the sockets of processes that ended without doing so themselves."""
    for left in folder.glob("*.sock"):
        with contextlib.suppress(ValueError, PermissionError):
            try:
                os.kill(int(left.stem), 0)
            except ProcessLookupError:
                left.unlink(missing_ok=True)
