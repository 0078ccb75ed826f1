"""Running a function in a fresh interpreter: a record goes in, a record comes out.

What one process has compiled, cached, allocated or laid out in memory cannot reach the next. The child is given the
function's name and the path of a file for its answer; the request comes on stdin. What it prints goes to stderr.

::

    python -c … package.module:function /tmp/…/response.json < request.json
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec

from pyrometer import errors
from pyrometer.errors import PyrometerError, UserProgramError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import Record, doc, from_json, to_json
from pyrometer.workload.failure import described, signal_name
from pyrometer.workload.output import stdout_to_stderr

Q = TypeVar("Q", bound=Record)
R = TypeVar("R", bound=Record)

# `python -m` would put the working directory, with whatever files are there, at the head of the path of imports.
_BOOT = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; from pyrometer.bench.fresh import serve; serve()"
)
_PR_SET_PDEATHSIG = 1


class Failure(Record, frozen=True, kw_only=True):
    """An error on its way from the child to its parent."""

    kind: Annotated[str, doc("name of the class in pyrometer.errors")]
    text: str
    trace: Annotated[str, doc("the child's traceback, for --debug")]

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """An error as it is sent; one that is not ours says that a fresh process raised it."""
        ours = isinstance(error, PyrometerError)
        return cls(
            kind=type(error).__name__ if ours else "PyrometerError",
            text=str(error) if ours else f"a fresh process raised {described(error)}",
            trace="".join(traceback.format_exception(error)),
        )

    def revived(self) -> PyrometerError:
        """The error as the parent raises it: the same class and text."""
        kind: type[PyrometerError] = getattr(errors, self.kind, PyrometerError)
        # Past __init__: some classes compose their text of arguments that did not travel.
        return kind.__new__(kind, self.text)


class ChildTracebackError(Exception):
    """The cause of an error that was raised in a fresh process; its text is the traceback from there."""


def run_fresh(function: Callable[[Q], R], request: Q, *, timeout_s: Seconds | None = None) -> R:
    """Call a function of a module in a fresh interpreter and return what it returns.

    The child lives in a session of its own: nothing of it, nor of what it started, outlives this call, also not on Ctrl-C. It
    dies with this process (on Linux; elsewhere it ends by itself).

    Args:
        function: at the top level of an importable module; takes one record and returns one, and is annotated so.
        request: its argument.
        timeout_s: after so long the child is ended.

    Raises:
        PyrometerError: the same class and text as the child raised.
        UserProgramError: the child was killed, ended by itself without an answer, or took too long.
    """
    what = f"{function.__module__}:{function.__qualname__}"
    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
        response = Path(folder) / "response.json"
        status = _wait([sys.executable, "-c", _BOOT, what, str(response)], to_json(request), timeout_s)
        raw = response.read_bytes() if response.exists() else b""
    if not raw:
        raise UserProgramError(ended_early(status))
    result, failure = msgspec.json.decode(raw, type=tuple[msgspec.Raw, Failure | None])
    if failure is not None:
        raise failure.revived() from ChildTracebackError(failure.trace)
    answer: R = from_json(get_type_hints(function)["return"], bytes(result))
    return answer


def serve() -> None:
    """What the fresh interpreter runs: read the request, call the function, write the answer beside and rename it."""
    die_with_parent()
    what, place = sys.argv[1:]
    sys.argv[1:] = []
    request = sys.stdin.buffer.read()
    beside = Path(f"{place}.part")
    with stdout_to_stderr():
        beside.write_bytes(_answer(what, request))
    beside.rename(place)


def _answer(what: str, request: bytes) -> bytes:
    module, _, name = what.partition(":")
    failure: Failure | None = None
    answer: Record | None = None
    try:
        function: Callable[[Any], Record] = getattr(importlib.import_module(module), name)
        hints = get_type_hints(function)
        del hints["return"]
        (kind,) = hints.values()
        answer = function(from_json(kind, request))
    except Exception as error:  # noqa: BLE001 - it is raised again, in the parent
        failure = Failure.of(error)
    return msgspec.json.encode((answer, failure))


def _wait(command: list[str], request: bytes, timeout_s: Seconds | None) -> int:
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child, ended(child):  # noqa: S603 - our own interpreter
        try:
            child.communicate(request, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise UserProgramError(
                f"a fresh process took longer than {format_seconds(timeout_s)} and was ended"
            ) from None
    return child.returncode


@contextlib.contextmanager
def ended(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """At the end nothing of the child is left, also when it started processes that it did not wait for."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def die_with_parent() -> None:
    """Let this process end when the one that started it does; on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def ended_early(status: int) -> str:
    """What became of a child that left no answer, by its exit status."""
    if status >= 0:
        return f"a fresh process ended with exit code {status} before it had a result; its own messages are above"
    name = signal_name(-status)
    if -status == signal.SIGKILL:
        return f"a fresh process was killed ({name}): the machine probably ran out of memory; use a smaller batch or model"
    return f"a fresh process was ended by {name}; its own messages are above"
