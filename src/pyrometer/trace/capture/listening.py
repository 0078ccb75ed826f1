"""Being traced from outside: a thread that waits for an order, and costs nothing until one comes.

Nobody listens unless asked to: `enable_attach()`, or `PYROMETER_ATTACH=1` in the environment of a program that imports
pyrometer. Orders are taken from the same user only, over a socket in a folder that nobody else can enter. Whoever can
give an order could as well attach a debugger; a file is written where the order says, with the rights of this process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyrometer.errors import InputError, PyrometerError
from pyrometer.record import from_json, to_json
from pyrometer.trace.capture.rendezvous import (
    LONGEST_ADDRESS,
    TraceAnswer,
    TraceOrder,
    address,
    own_folder,
    sweep,
)
from pyrometer.trace.capture.step_capture import StepCapture
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, profiler_running, quiet

VARIABLE = "PYROMETER_ATTACH"
LONGEST_ORDER = 1 << 16
LONGEST_DURATION_S = 600.0


def enable_attach() -> None:
    """Let `pyrometer trace --attach` record this process; again is as good as once.

    A thread waits on a socket. Nothing is imported, and no signal is used. A forked child does not listen.

    Raises:
        InputError: the folder for the socket is not this user's alone.
    """
    global _listener  # noqa: PLW0603 - one per process
    if _listener is None or _listener.pid != os.getpid():
        _listener = _Listener()


def disable_attach() -> None:
    """Stop listening; an order that is being carried out is finished first."""
    global _listener
    listener, _listener = _listener, None
    if listener is not None:
        listener.close()


def enable_if_asked() -> None:
    """Listen when the environment says so; what prevents it goes to stderr, because the program must run."""
    if os.environ.get(VARIABLE, "") not in {"", "0"}:
        try:
            enable_attach()
        except (InputError, OSError) as error:
            sys.stderr.write(f"pyrometer: {VARIABLE}: {error}\n")


class _Listener:
    def __init__(self) -> None:
        self.pid = os.getpid()
        folder = own_folder()
        sweep(folder)
        self._address = address(folder, self.pid)
        if len(os.fsencode(self._address)) > LONGEST_ADDRESS:
            raise InputError(f"{self._address}: too long for a socket; set TMPDIR to a shorter path")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._address)  # noqa: PTH108 - left by an earlier process of this number
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self._address)
        self._socket.listen(4)
        self._thread = threading.Thread(target=self._serve, name="pyrometer attach", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def close(self) -> None:
        if os.getpid() != self.pid or self._socket.fileno() < 0:
            return
        atexit.unregister(self.close)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._address)  # noqa: PTH108
        self._thread.join(timeout=1.0)

    def _forget(self) -> None:
        """A forked child has the socket, but not the thread."""
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            with connection, contextlib.suppress(OSError):
                if _same_user(connection):
                    connection.sendall(to_json(_answer(connection)))


def _same_user(connection: socket.socket) -> bool:
    """Whether the peer is this user, or root; where the system does not say, the folder's rights have decided."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    raw = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return struct.unpack("3i", raw)[1] in {os.getuid(), 0}


def _answer(connection: socket.socket) -> TraceAnswer:
    try:
        return _carry_out(from_json(TraceOrder, _received(connection)))
    except PyrometerError as error:
        return TraceAnswer(error=str(error))
    except Exception as error:  # noqa: BLE001 - the program must run on; whoever asked is told
        return TraceAnswer(error=f"{type(error).__name__}: {error}")


def _received(connection: socket.socket) -> bytes:
    """The order: all that comes until the peer has said all it wants."""
    connection.settimeout(5.0)
    order = b""
    while len(order) < LONGEST_ORDER and (part := connection.recv(4096)):
        order += part
    return order


def _carry_out(order: TraceOrder) -> TraceAnswer:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "profiler"):
        raise InputError("the process has not imported torch")
    if profiler_running(torch):
        raise InputError("the process runs a profiler of its own, and there can be only one")
    if order.steps is not None:
        answer, profiler = StepCapture(torch, order).run()
    else:
        answer, profiler = _record_for(torch, order)
    profiler.export_chrome_trace(order.path)
    return TraceAnswer(
        steps_from=answer.steps_from,
        untraced_s=answer.untraced_s,
        traced_s=answer.traced_s,
        raw_bytes=Path(order.path).stat().st_size,
        notes=answer.notes,
    )


def _record_for(torch: Any, order: TraceOrder) -> tuple[TraceAnswer, Any]:
    """Record all threads for a time, from this one."""
    duration_s = order.duration_s
    if duration_s is None or not 0 < duration_s <= LONGEST_DURATION_S:
        raise InputError(f"duration: got {duration_s} s; it must lie between 0 and {LONGEST_DURATION_S:g} s")
    profiler, missing = new_profiler(torch, order.options, all_threads=True)
    if "profile_all_threads" in missing:
        raise InputError(
            f"torch {torch.__version__} records only the thread that starts the profiler; ask for steps instead"
        )
    with quiet():
        profiler.start()
    time.sleep(duration_s)
    with quiet():
        profiler.stop()
    return TraceAnswer(notes=[f"this torch cannot record {name}" for name in missing]), profiler


_listener: _Listener | None = None
