"""Recording a process that is running already, from another process."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import msgspec

from pyrometer.errors import InputError, PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.record import from_json, to_json
from pyrometer.trace.capture.overhead import step_cost
from pyrometer.trace.capture.record import Capture, CaptureOptions, require_count
from pyrometer.trace.capture.rendezvous import TraceAnswer, TraceOrder, address, candidate_folders
from pyrometer.trace.capture.writing import destination, finish, partial, reopened
from pyrometer.trace.trace import Trace


def attach(
    pid: int,
    path: str | Path,
    *,
    steps: int | None = None,
    duration_s: Seconds | None = None,
    options: CaptureOptions | None = None,
    patience_s: Seconds = 10.0,
    timeout_s: Seconds = 600.0,
) -> Trace:
    """Have a running process record itself, and open what it wrote.

    The process must be the same user's, and listen: `PYROMETER_ATTACH=1` in its environment, or `pm.enable_attach()`
    in its code. With `steps` the thread is recorded whose optimizer, or else whose outermost `pm.span`, steps first; with
    `duration_s` all threads are. Names of modules are not known from outside.

    Args:
        pid: the process.
        path: where to write the trace, `.json` or `.json.gz`; the process writes there, too.
        steps: steps to record.
        duration_s: time to record; by default 1 s when no steps are asked for.
        options: what to record.
        patience_s: give up when no step ends for so long.
        timeout_s: give up when the process does not answer for so long.

    Raises:
        InputError: there is no such process, it does not listen, or it refuses.
        PyrometerError: it gave no answer, or the profiler recorded nothing.
    """
    if steps is not None and duration_s is not None:
        raise InputError("steps and a duration were given; a process is recorded for one or the other")
    if steps is not None:
        require_count("steps", steps, 1)
    elif duration_s is None:
        duration_s = 1.0
    options = CaptureOptions() if options is None else options
    with destination(Path(path).absolute()) as target:
        file = partial(target)
        order = TraceOrder(
            path=str(file),
            steps=steps,
            duration_s=duration_s,
            patience_s=patience_s,
            options=options.for_profiler,
        )
        try:
            answer = _ask(pid, order, timeout_s)
            if not file.exists():
                raise PyrometerError(
                    f"process {pid}: it says that it wrote {file}, which is not there; does it see the same files?"
                )
            finish(file, target)
        finally:
            file.unlink(missing_ok=True)
        return reopened(target, _capture(answer, options, steps), kept=True, expected_steps=steps)


def _ask(pid: int, order: TraceOrder, timeout_s: Seconds) -> TraceAnswer:
    with _connected(pid) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.sendall(to_json(order))
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        except TimeoutError as error:
            raise PyrometerError(f"process {pid}: no answer within {timeout_s:g} s") from error
        except OSError as error:
            raise PyrometerError(f"process {pid}: it broke off: {error.strerror}") from error
    if not parts:
        raise PyrometerError(f"process {pid}: it ended, or closed the connection, without an answer")
    answer = from_json(TraceAnswer, b"".join(parts))
    if answer.error is not None:
        raise InputError(f"process {pid}: {answer.error}")
    return answer


def _connected(pid: int) -> socket.socket:
    for folder in candidate_folders():
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(address(folder, pid))
        except OSError:
            connection.close()
        else:
            return connection
    raise InputError(_unreachable(pid))


def _unreachable(pid: int) -> str:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return f"process {pid}: there is none; see `ps` for the number of your program"
        return (
            f"process {pid}: it does not listen; start it with PYROMETER_ATTACH=1 and `import pyrometer` in it, "
            "or call pm.enable_attach()"
        )
    return f"process {pid}: it is another user's; only its own user can record it"


def _capture(answer: TraceAnswer, options: CaptureOptions, steps: int | None) -> Capture:
    return Capture(
        source="process",
        options=msgspec.structs.replace(options, with_modules=False),  # their names are not known here
        asked_steps=steps,
        num_steps=len(answer.traced_s),
        **step_cost(answer.untraced_s, answer.traced_s),
        raw_bytes=answer.raw_bytes,
        file_bytes=0,
        num_events=0,
        notes=answer.notes,
    )
