"""Parts of a diagnosis, each of which may be missing without taking the others with it."""

from __future__ import annotations

import gc
import io
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, profiler_running, quiet

OPTIONS = {"record_shapes": True, "with_stack": False, "profile_memory": False}


def warm_profiler() -> str | None:
    """Start and stop the profiler once: its first start takes seconds, which must not fall into a problem; says what failed."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "torch is not imported"
    try:
        if profiler_running(torch):
            return "another profiler runs"
        profiler, _ = new_profiler(torch, OPTIONS, all_threads=True)
        with quiet():
            profiler.start()
            profiler.stop()
    except Exception as error:  # noqa: BLE001 - of any version of torch
        return f"{type(error).__name__}: {error}"
    return None


def record_requests(path: Path, wait: Callable[[Seconds], bool], longest_s: Seconds) -> str | None:
    """Write a trace of all threads, from now until `wait` returns; says what prevents it.

    Started, stopped and written by the thread that calls this, which is none that answers requests.
    """
    torch = sys.modules.get("torch")
    if torch is None or profiler_running(torch):
        return "no trace: torch is not imported" if torch is None else "no trace: another profiler runs"
    profiler, _ = new_profiler(torch, OPTIONS, all_threads=True)
    with quiet():
        profiler.start()
        try:
            wait(longest_s)
        finally:
            profiler.stop()
            profiler.export_chrome_trace(str(path))
    del profiler
    gc.collect()  # short profiles in a row keep hundreds of megabytes of the host else
    return None


def thread_stacks(own: int | None = None) -> str:
    """Where each thread of Python stands now.

    Args:
        own: identity of a thread to leave out.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - documented, in spite of its name
        if ident != own:
            parts.append(f"{names.get(ident, 'unknown')} ({ident})\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)


def memory_snapshot(most_bytes: Bytes) -> bytes | None:
    """What the allocator of CUDA holds, as `pyrometer memory` reads it; `None` without CUDA in use, or where it is too large."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    file = io.BytesIO()
    snapshot: Any = torch.cuda.memory._snapshot()  # noqa: SLF001 - torch has no public name for it
    pickle.dump(snapshot, file)
    return file.getvalue() if file.tell() <= most_bytes else None
