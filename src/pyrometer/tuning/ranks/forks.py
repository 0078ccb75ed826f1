"""Processes that launches of a script are forked from: torchrun starts one a rank, and torch is imported once for all launches."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.bench.fresh import die_with_parent
from pyrometer.errors import UserProgramError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, from_json
from pyrometer.tuning.ranks.messages import Hello
from pyrometer.workload.ranks.launch import first_error, torchrun

LOOK_S: Seconds = 0.2


class Launch(Record, frozen=True, kw_only=True, tag=True):
    """Fork a rank of a launch."""

    place: str
    argv: list[str]
    cwd: str
    log: str
    port: int


class End(Record, frozen=True, kw_only=True, tag=True):
    """End a rank that does not end by itself within a time, and tell what it ended with."""

    pid: int
    within_s: Seconds


class Forks:
    """The hold on these processes; they end with it, or with this process."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self._lock = threading.Lock()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._servers: list[socket.socket] = []

    def launch(self, argv: Sequence[str], cwd: str, place: Path, log: Path, until: float) -> list[int]:
        """Fork a script, which connects to a socket; returns the processes in order of rank.

        Raises:
            UserProgramError: torchrun does not start in time.
        """
        with self._lock:
            self.start(until)
            log.write_bytes(b"")
            order = Launch(place=str(place), argv=list(argv), cwd=cwd, log=str(log), port=_free_port())
            return [_asked(server, order, int) for server in self._servers]

    def end(self, rank: int, pid: int, within_s: Seconds = 0.0) -> int | None:
        """End a rank of a launch; returns what it ended with by itself within a time, below 0 a signal; else `None`."""
        with self._lock, contextlib.suppress(OSError, IndexError, UserProgramError):
            status: int | None = _asked(self._servers[rank], End(pid=pid, within_s=within_s), int | None)
            return status
        return None

    def accepted(self, listener: socket.socket, until: float) -> list[socket.socket]:
        """The connections of all ranks, in their order.

        Raises:
            UserProgramError: they do not come in time, or torchrun is gone.
        """
        numbered: dict[int, socket.socket] = {}
        while len(numbered) < self.num_ranks:
            if select.select([listener], [], [], LOOK_S)[0]:
                rank = listener.accept()[0]
                numbered[from_json(Hello, _line(rank)).rank] = rank
            elif self._launcher is None or self._launcher.poll() is not None or time.monotonic() > until:
                raise UserProgramError("it did not start all ranks in time")
        return [numbered[number] for number in sorted(numbered)]

    def close(self) -> None:
        """End all of them."""
        for server in self._servers:
            server.close()
        if self._launcher is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._launcher.pid, signal.SIGKILL)
            self._launcher.wait()
        self._launcher, self._servers = None, []

    def start(self, until: float) -> None:
        """Start them where they are not: torch is imported, which the first launch waits for.

        Raises:
            UserProgramError: torchrun does not start in time.
        """
        if self._launcher is not None:
            return
        with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:  # a socket's path must be short
            place, said = Path(folder) / "ranks", Path(folder) / "log"
            with socket.socket(socket.AF_UNIX) as listener, said.open("wb") as log:
                listener.bind(str(place))
                listener.listen(self.num_ranks)
                self._launcher = subprocess.Popen(  # noqa: S603 - torchrun
                    torchrun(self.num_ranks, "pyrometer.tuning.ranks.rank", "serve", str(place)),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                try:
                    self._servers = self.accepted(listener, until)
                except UserProgramError as error:
                    ended = self._launcher.poll() is not None
                    self.close()
                    why = first_error(said.read_text(errors="replace")) if ended else error
                    raise UserProgramError(f"torchrun: {why}") from None


def _line(connection: socket.socket) -> bytes:
    """One message, and no byte of the next."""
    line = b""
    while not line.endswith(b"\n"):
        line += (byte := connection.recv(1))
        if not byte:
            raise UserProgramError("a rank ended before it said its number")
    return line


def _asked(server: socket.socket, order: Launch | End, kind: Any) -> Any:
    server.sendall(msgspec.json.encode(order) + b"\n")
    return msgspec.json.decode(_line(server), type=kind)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


# ---- in the processes of torchrun --------------------------------------------------------------------------------


def serve_forks(place: str) -> Launch:
    """Fork a rank for each order; returns in the fork, with what it is to run."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    connection.sendall(msgspec.json.encode(Hello(rank=int(os.environ["RANK"]))) + b"\n")
    for line in connection.makefile("rb"):
        order = msgspec.json.decode(line, type=Launch | End)
        if isinstance(order, End):
            answer: int | None = _end(order)
        elif (answer := os.fork()) == 0:
            connection.close()
            _become(order)
            return order
        connection.sendall(msgspec.json.encode(answer) + b"\n")
    sys.exit(0)


def _end(order: End) -> int | None:
    until = time.monotonic() + order.within_s
    while (ended := os.waitpid(order.pid, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(LOOK_S / 10)
    if ended == (0, 0):
        os.kill(order.pid, signal.SIGKILL)
        os.waitpid(order.pid, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(order.pid, signal.SIGKILL)  # what the script has started
    return None if ended == (0, 0) else os.waitstatus_to_exitcode(ended[1])


def _become(order: Launch) -> None:
    """Be a rank as torchrun would start it, in a session of its own."""
    die_with_parent()
    os.setsid()
    log = os.open(order.log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(order.cwd)
    # Rank 0 holds the job's store, since torchrun's holds that of all launches.
    os.environ |= {"MASTER_PORT": str(order.port), "TORCHELASTIC_USE_AGENT_STORE": "False"}
