"""torch.profiler, as a capture needs it; the one place that knows what is private or differs between versions of torch.

| what | how | where it is missing |
|---|---|---|
| whether a profiler runs | `torch.autograd._profiler_enabled` and `_is_profiler_enabled` | taken as not running |
| all threads, sync events | `torch._C._profiler._ExperimentalConfig` | left out, and said |
| recording by other threads ends before their events are read | `profile.toggle_collection_dynamic` | left out |
| the profiler's own line on stderr | filtered while it starts and stops | |
| Inductor, which preparing a trace imports | `torch._lazy_modules` does not name it meanwhile | imported, which takes a second or two |

Files are written by the profiler's C++ exporter: the one in Python is valid JSON for every name, but takes five times as
long, drops `trace_id` and turns allocations into intervals. So names of ours are made harmless instead.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PHASE = "phase:"
MODULE = "module:"

_NOISE = (b"USDT:", b"ERROR: External init callback must run in same thread")
_WARNINGS = (
    b"Memory block of unknown size was allocated before the profiling started",
    b"Toggling CPU activity with GPU activity on",
)
_WRITTEN_S = 0.05  # by a thread that has begun to write an event, and waits for a core
_STDERR = 2
_CLEAN = {ord('"'): "'", ord("\\"): "/"}


def sanitised(name: str) -> str:
    r"""A name that every exporter writes as it is: printable ASCII without quotes and backslashes.

    >>> sanitised('lidar "raw"\n→ voxels')
    "lidar 'raw' ? voxels"
    """
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return name
    kept = " ".join(name.split()).translate(_CLEAN)
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in kept)


def profiler_running(torch: Any) -> bool:
    """Whether some profiler, not necessarily ours, is at work in this process."""
    flag = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    asked = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(flag or (asked is not None and asked()))


def new_profiler(
    torch: Any,
    options: dict[str, bool],
    *,
    schedule: Callable[[int], Any] | None = None,
    on_ready: Callable[[Any], None] | None = None,
    all_threads: bool = False,
) -> tuple[Any, list[str]]:
    """A profiler that has not been started, and which settings this torch does not have.

    Args:
        torch: the module.
        options: `record_shapes`, `with_stack`, …, as `torch.profiler.profile` calls them.
        schedule: what to do in which step; without it the profiler records from its start to its stop.
        on_ready: called with the profiler once the steps of the schedule are done.
        all_threads: record threads that did not start the profiler, too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config, missing = _experimental(torch, all_threads=all_threads)
        profiler = _profile_class(torch, all_threads=all_threads)(
            activities=_activities(torch),
            schedule=schedule,
            on_trace_ready=on_ready,
            experimental_config=config,
            **options,
        )
    return profiler, missing


def _profile_class(torch: Any, *, all_threads: bool) -> Any:
    """The profiler, which asks whether Inductor captures graphs: where nothing imported that yet, nothing does.

    It reads the events of other threads while these may still write them, and about one capture in 300 of a busy server ended the
    process (torch 2.13, "Invalid access on AppendOnlyList"). So nobody begins to write any more a moment before they are read.
    """

    class Profile(torch.profiler.profile):  # type: ignore[misc]  # of a module that is handed in
        def prepare_trace(self) -> None:
            with _without_inductor(torch):
                super().prepare_trace()

        def stop_trace(self) -> None:
            if all_threads and hasattr(self, "toggle_collection_dynamic"):
                self.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
                time.sleep(_WRITTEN_S)
            super().stop_trace()

    return Profile


@contextlib.contextmanager
def _without_inductor(torch: Any) -> Iterator[None]:
    """Let `hasattr(torch, "_inductor")` be false rather than import it."""
    lazy = getattr(torch, "_lazy_modules", None)
    if not isinstance(lazy, set) or "_inductor" not in lazy or "torch._inductor" in sys.modules:
        yield
        return
    lazy.discard("_inductor")
    try:
        yield
    finally:
        lazy.add("_inductor")


def steps_schedule(torch: Any, warmup: int, active: int) -> Callable[[int], Any]:
    """Warm-up steps, then steps that are recorded, then nothing."""
    action = torch.profiler.ProfilerAction
    last = warmup + active - 1

    def action_of(step: int) -> Any:
        if step < warmup:
            return action.WARMUP
        if step < last:
            return action.RECORD
        return action.RECORD_AND_SAVE if step == last else action.NONE

    return action_of


def _activities(torch: Any) -> list[Any]:
    """The host, and every kind of accelerator that is in use."""
    kinds = torch.profiler.ProfilerActivity
    supported = torch.profiler.supported_activities()
    wanted = [kinds.CPU]
    if torch.cuda.is_available():
        wanted.append(kinds.CUDA)
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        wanted.append(kinds.XPU)
    return [kind for kind in wanted if kind in supported]


def _experimental(torch: Any, *, all_threads: bool) -> tuple[Any, list[str]]:
    wanted = {"enable_cuda_sync_events": torch.cuda.is_available(), "profile_all_threads": all_threads}
    kind = getattr(torch._C._profiler, "_ExperimentalConfig", None)  # noqa: SLF001 - there is no public way
    known = {name for name, on in wanted.items() if on and _takes(kind, name)}
    missing = [name for name, on in wanted.items() if on and name not in known]
    return (kind(**dict.fromkeys(known, True)) if kind is not None and known else None), missing


def _takes(kind: Any, name: str) -> bool:
    try:
        kind(**{name: True})
    except TypeError:  # no such setting, or no such class
        return False
    return True


@contextlib.contextmanager
def unknown_block_freed(torch: Any) -> Iterator[None]:
    """Free a block of memory from before the profiler records, once it does.

    Of the first such block, and of every thousandth, the profiler says on stderr that it does not know it: let that be while it is `quiet`.
    """
    block = torch.UntypedStorage(1)
    yield
    del block


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the profiler's own lines off stderr; whatever else is written there in the meantime follows afterwards."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # no stderr
        yield
        return
    with tempfile.TemporaryFile() as caught:
        if sys.stderr is not None:
            sys.stderr.flush()
        os.dup2(caught.fileno(), _STDERR)
        try:
            yield
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(kept, _STDERR)
            os.close(kept)
            caught.seek(0)
            said = [
                line
                for line in caught
                if not line.startswith(_NOISE) and not any(map(line.__contains__, _WARNINGS))
            ]
            for line in said:
                os.write(_STDERR, line)


def compiled_frames() -> int:
    """How many frames Dynamo has compiled in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    return int(counters["frames"]["total"]) if counters is not None else 0
