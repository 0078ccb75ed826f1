"""Checkpoints on disk: written whole or not at all, known by their hashes, the last few kept.

A checkpoint is a folder `step-00001000` with `state.pt` and `manifest.json`. It is written beside its place, forced to the disk, and
renamed when it is complete, so that a process or a machine that dies meanwhile leaves the ones before as they were. What is
damaged later does not have the size or the hash that its manifest says, and is passed over.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from pyrometer.errors import InputError
from pyrometer.files import sha256_of, sync
from pyrometer.loading.figures import require_count
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, from_json, to_json

STATE, MANIFEST = "state.pt", "manifest.json"
_PREFIX = "step-"

log = logging.getLogger(__name__)


class Manifest(Record, frozen=True, kw_only=True):
    """What a checkpoint's files are."""

    schema_version: int = 1
    step: int
    num_bytes: Bytes
    sha256: str
    torch: str


class CheckpointNote(Record, frozen=True, kw_only=True):
    """A checkpoint that was written."""

    step: int
    path: str
    num_bytes: Bytes
    write_s: Seconds


class CheckpointFolder:
    """The checkpoints of one training.

    Args:
        folder: made when the first is written.
        keep: how many are left; older ones are deleted when a newer one is complete.

    Raises:
        InputError: `keep` below 1, or the folder is a file.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        require_count("keep", keep)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"checkpoints: {folder} is a file; it must be a folder, or not exist yet")
        self.folder = folder
        self.keep = keep
        self.rejected: list[str] = []

    def save(self, step: int, state: dict[str, Any]) -> CheckpointNote:
        """Write a checkpoint; it counts only once all of it is on the disk.

        Raises:
            InputError: the state holds what `torch.load(weights_only=True)` would refuse.
            OSError: it cannot be written.
        """
        began = time.perf_counter()
        place = self.folder / f"{_PREFIX}{step:08d}"
        beside = place.with_name(f".{place.name}.partial")
        for unfinished in self.folder.glob(f".{_PREFIX}*.partial"):
            _remove(unfinished)  # of a process that was killed
        beside.mkdir(parents=True)
        try:
            num_bytes = _write(beside, step, state)
            _remove(place)  # one that was found to be damaged, or is written again
            beside.rename(place)
        finally:
            _remove(beside)
        sync(self.folder)
        self._let_go_of_older(step)
        return CheckpointNote(
            step=step, path=str(place), num_bytes=num_bytes, write_s=time.perf_counter() - began
        )

    def sound_steps(self) -> Iterator[int]:
        """The steps of the checkpoints that are whole, newest first; those that are not are put in `rejected` on the way."""
        for place in reversed(self._places()):
            reason = _damage(place)
            if reason is None:
                yield _step_of(place)
            else:
                self.rejected.append(f"{place}: {reason}")
                log.warning("checkpoint passed over: %s: %s", place, reason)

    def load(self, step: int) -> dict[str, Any]:
        """Read a checkpoint onto the CPU, without running code that it may hold."""
        file = self.folder / f"{_PREFIX}{step:08d}" / STATE
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        return state

    def _places(self) -> list[Path]:
        return sorted(
            place for place in self.folder.glob(f"{_PREFIX}*") if place.name[len(_PREFIX) :].isdigit()
        )

    def _let_go_of_older(self, step: int) -> None:
        # Later ones are damaged: training went on from before them.
        places = self._places()
        newest = [place for place in places if _step_of(place) <= step][-self.keep :]
        for place in places:
            if place not in newest:
                _remove(place)


def _step_of(place: Path) -> int:
    return int(place.name[len(_PREFIX) :])


def _write(folder: Path, step: int, state: dict[str, Any]) -> Bytes:
    file = folder / STATE
    torch.save(state, file)
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    if unsafe:
        raise InputError(
            f"checkpoint: the state holds {unsafe[0]}, which torch.load(weights_only=True) refuses; "
            "keep tensors, numbers, strings, lists, tuples and dicts in state_dict()"
        )
    sync(file)
    manifest = Manifest(
        step=step, num_bytes=file.stat().st_size, sha256=sha256_of(file), torch=str(torch.__version__)
    )
    (folder / MANIFEST).write_bytes(to_json(manifest, indent=2))
    sync(folder / MANIFEST)
    sync(folder)
    return manifest.num_bytes


def _damage(place: Path) -> str | None:
    """What is wrong with a checkpoint; `None` for a whole one."""
    try:
        manifest = from_json(Manifest, (place / MANIFEST).read_bytes())
        size = (place / STATE).stat().st_size
        if size != manifest.num_bytes:
            return f"{STATE} has {size} bytes, its manifest says {manifest.num_bytes}"
        if sha256_of(place / STATE) != manifest.sha256:
            return f"{STATE} does not have its manifest's hash"
    except (OSError, InputError) as error:
        return f"incomplete ({error})"
    return None


def _remove(place: Path) -> None:
    """Delete a checkpoint; its manifest first, so that what is left when that is cut short is no checkpoint."""
    if place.is_dir():
        (place / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(place)
