"""Record a snapshot around a region, bounded, and written whatever happens in it."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.memory.private.cuda_snapshot import (
    HistoryModule,
    is_recording,
    listen_for_oom,
    recording_module,
)

MAX_ENTRIES = 200_000
"""Some hundred megabytes of file; the oldest events make room for new ones."""
_PROTOCOL = 4
"""torch's own viewer reads no later one."""


@contextlib.contextmanager
def record_snapshot(
    path: str | Path,
    *,
    max_entries: int = MAX_ENTRIES,
    stacks: Literal["python", "all"] = "all",
    on_oom: bool = True,
) -> Iterator[Path]:
    """Record the device allocator's history around a region, and dump it at its end, exceptions included.

    At an OOM the snapshot is taken at that very instant, before the stack unwinds and frees what filled the memory; what
    came first is kept. Recording is off afterwards, as it must have been before.

    Args:
        path: of the file; written whole or not at all.
        max_entries: events that are kept; of more, the last.
        stacks: `all` records C++ frames too, without which the backward pass has no names; `python` costs less.
        on_oom: whether to take the snapshot at the first OOM, where torch tells of one.

    Yields:
        The path.

    Raises:
        InputError: there is no device to record on, recording is on already, or an argument makes no sense.
        OSError: the file cannot be written.
    """
    import torch

    target = Path(path)
    _check(target, max_entries)
    history = recording_module(torch)
    if history is None:
        raise InputError(
            "snapshots are of CUDA or XPU memory, and this torch finds no such device; on CPU use pm.profile_memory(work)"
        )
    if is_recording(torch, history.kind):
        raise InputError(
            "memory history is being recorded already; end that first with "
            f"torch.{history.kind}.memory._record_memory_history(None)"
        )
    taken: list[Any] = []
    with contextlib.ExitStack() as stack:
        stack.callback(history.stop)
        history.start(max_entries, stacks=stacks, context="all")
        if on_oom:
            stack.callback(listen_for_oom(torch, history.kind, lambda *_: _take_once(history, taken)))
        stack.callback(_dump, history, taken, target)
        yield target


def _check(target: Path, max_entries: int) -> None:
    if max_entries < 1:
        raise InputError(
            f"max_entries: got {max_entries}; at least 1 event must be kept, some 100000 are usual"
        )
    if not target.resolve().parent.is_dir():
        raise InputError(f"{target}: its folder does not exist; create it first")


def _take_once(history: HistoryModule, taken: list[Any]) -> None:
    """Called from within the allocator: must not raise, or the OOM would be lost behind it."""
    if not taken:
        with contextlib.suppress(Exception):
            taken.append(history.snapshot())


def _dump(history: HistoryModule, taken: list[Any], target: Path) -> None:
    snapshot = taken[0] if taken else history.snapshot()
    with replacing(target) as beside, beside.open("wb") as file:
        pickle.dump(snapshot, file, protocol=_PROTOCOL)
