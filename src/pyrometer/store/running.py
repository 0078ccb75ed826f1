"""Runs that are still going on: each announces itself by a small file in the store, which is gone when it ends.

::

    .pyrometer/running/<id>.json      a `Running`, replaced as a whole at most twice a second, and when a stage begins

Nothing of a measurement depends on it: what cannot be written is left out without a word. The file of a process that
was killed is removed by whoever lists the folder next.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, final

import psutil

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc, from_json, to_json

LEAST_S = 0.5
"""Between two writes of the same stage."""

BURST = 10
"""Writes that may follow each other at once, when stages do: the next may last long without another word."""

MOST_POINTS = 240
"""Of the course; beyond them every second one is left out, so that the whole run stays in view."""

SILENT_S = 3600.0
"""After so long without a word a run of another machine, of which nothing else can be known, is taken for dead."""

CLOCK_S = 5.0
"""How far two readings of when a process began may lie apart: the second one follows the clock when that is set."""

LEFT_S = 60.0
"""After so long a half-written file is one that nobody writes any more."""

_FOLDER = "running"
_STARTED_AT = "%Y-%m-%dT%H:%M:%S.%fZ"
_NUMBER = re.compile(r"\d+")


class Running(Record, frozen=True, kw_only=True):
    """A run under way, as it last spoke."""

    id: Annotated[str, doc("of the announcement; the run gets an id of its own when it is stored")]
    pid: int
    process_started_s: Annotated[Seconds, doc("when the process began, since 1970: pids are given out again")]
    machine: Annotated[str, doc("host, boot and process namespace: pids mean nothing elsewhere")]
    kind: Annotated[str, doc("the verb: bench, check, …")]
    target: Annotated[str, doc("what is measured, as it was typed")]
    started_at: Annotated[str, doc("UTC, ISO 8601")]
    stage: Annotated[str, doc("what is under way")] = ""
    share: Annotated[float | None, doc("how much is done, 0 to 1; null where that is not known")] = None
    num_samples: Annotated[int | None, doc("taken so far, in this stage")] = None
    step_s: Annotated[Seconds | None, doc("how long the last step took")] = None
    course: Annotated[
        list[tuple[Seconds, Seconds]], doc("time since the start, and how long a step took then")
    ] = []


@final
class Announcement:
    """Says how far a run is, for others to see; to be used as a context manager around the whole run."""

    def __init__(self, store: Path | str, *, kind: str, target: str) -> None:
        self._store = Path(store).absolute()
        self._owner = os.getpid()
        self._made_store = False
        self._began_s = self._written_s = time.monotonic()
        self._credit = float(BURST)
        self._stage: str | None = None
        self._course: list[tuple[Seconds, Seconds]] = []
        now = datetime.now(UTC)
        self._head = {"kind": kind, "target": _portable(target), "started_at": now.strftime(_STARTED_AT)}
        self._path = self._store / _FOLDER / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}.json"

    def __enter__(self) -> Announcement:
        return self

    def __exit__(self, *_error: object) -> None:
        if os.getpid() == self._owner:  # and not in a child that was forked from it
            with contextlib.suppress(OSError):
                self._withdraw()

    def tell(
        self,
        share: float | None,
        stage: str,
        *,
        num_samples: int | None = None,
        step_s: Seconds | None = None,
    ) -> None:
        """Say how far the run is; costs next to nothing when it is told more often than it is written.

        Args:
            share: how much is done, 0 to 1.
            stage: what is under way.
            num_samples: taken so far.
            step_s: how long the last step took.
        """
        now_s, words = time.monotonic(), _NUMBER.sub("", stage)
        quiet_s = now_s - self._written_s
        credit = min(self._credit + quiet_s / LEAST_S, float(BURST))
        if (words == self._stage and quiet_s < LEAST_S) or credit < 1 or os.getpid() != self._owner:
            return
        self._credit = credit - 1
        if step_s is not None:
            self._course.append((round(now_s - self._began_s, 3), step_s))
            if len(self._course) > MOST_POINTS:
                del self._course[1:-1:2]
        first, self._written_s, self._stage = self._stage is None, now_s, words
        with contextlib.suppress(OSError, psutil.Error):
            if first:
                self._prepare()
            running = Running(
                id=self._path.stem,
                pid=self._owner,
                process_started_s=psutil.Process(self._owner).create_time(),
                machine=this_machine(),
                stage=_portable(stage),
                share=None if share is None else min(max(share, 0.0), 1.0),
                num_samples=num_samples,
                step_s=step_s,
                course=self._course,
                **self._head,
            )
            with replacing(self._path) as beside:
                beside.write_bytes(to_json(running))

    def _prepare(self) -> None:
        self._made_store = not self._store.exists()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._made_store:  # as a store that was made by saving to it
            (self._store / ".gitignore").write_text("*\n", encoding="utf-8")
        else:
            list_running(self._store)  # removes what was left behind

    def _withdraw(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._stage is None:
            return
        self._path.parent.rmdir()  # fails, and is left, while others are running
        if self._made_store and os.listdir(self._store) == [".gitignore"]:  # noqa: PTH208 - nothing was stored
            (self._store / ".gitignore").unlink()
            self._store.rmdir()


def list_running(store: Path | str) -> list[Running]:
    """The runs of a store that are going on, the newest first; removes the files of those that were killed."""
    found = [running for path in _files(Path(store)) if (running := _alive(path)) is not None]
    return sorted(found, key=lambda one: (one.started_at, one.id), reverse=True)


def elapsed_s(running: Running) -> Seconds:
    """How long it has been going on."""
    return max(0.0, (datetime.now(UTC) - _started(running)).total_seconds())


def this_machine() -> str:
    """The host, its boot and the namespace of our process ids: elsewhere the same pid is another process."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it leads to no file
    return " ".join(parts)


def _portable(text: str) -> str:
    """Without the odd bytes of a file's name, which Python keeps as lone surrogates and JSON has no place for."""
    return text.encode("utf-8", "replace").decode()


def _files(store: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for path in sorted((store / _FOLDER).iterdir()):
            if path.suffix == ".json":
                yield path
            elif path.suffix == ".partial" and _age_s(path) > LEFT_S:
                path.unlink(missing_ok=True)  # of a process that was killed while it wrote


def _alive(path: Path) -> Running | None:
    """What a file says, if its process still runs; the file of a dead process is removed."""
    try:
        running = _read(path)
        if running is not None and _lives(running, path):
            return running
        # What cannot be read may be of a later version, so it is given time.
        if running is not None or _age_s(path) > SILENT_S:
            path.unlink()
    except OSError:
        pass  # gone in this moment, or not ours to read or remove
    return None


def _read(path: Path) -> Running | None:
    try:
        running = from_json(Running, path.read_bytes())
        _started(running)
    except (InputError, ValueError):
        return None
    return running


def _lives(running: Running, path: Path) -> bool:
    if running.machine != this_machine():
        return _age_s(path) < SILENT_S
    try:
        process = psutil.Process(running.pid)
        same = abs(process.create_time() - running.process_started_s) < CLOCK_S
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.AccessDenied:
        return True
    except (psutil.Error, ValueError, OverflowError):  # also of a pid that cannot be one
        return False


def _started(running: Running) -> datetime:
    return datetime.strptime(running.started_at, _STARTED_AT).replace(tzinfo=UTC)


def _age_s(path: Path) -> Seconds:
    return time.time() - path.stat().st_mtime
