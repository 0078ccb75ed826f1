"""What an unfinished matrix has already: one file per finished cell, so that a repeated command goes on from there."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import msgspec

from pyrometer.bench.matrix.cell import Cell, Settings
from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.version import __version__
from pyrometer.workload.target import Target


class MatrixState:
    """The finished cells of one matrix on one machine.

    They are found again by the target, the content of the target's file, this version of Pyrometer, and the machine; a
    change in what that file imports is not seen.

    Args:
        folder: where the states of all unfinished matrices are.
        target: what is run.
        fingerprint: of the environment.

    Raises:
        InputError: the folder cannot be written.
    """

    def __init__(self, folder: Path, target: Target, fingerprint: str) -> None:
        identity = [target.text, target.place, _content_hash(target), fingerprint, __version__]
        self.folder = folder / f"matrix-{_hash(identity)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.folder}: cannot keep finished cells there ({error.strerror}); pass another --store"
            ) from error

    def load(self, settings: Settings) -> Cell | None:
        """A finished cell; `None` when there is none that can be read."""
        try:
            return from_json(Cell, self._file(settings).read_bytes())
        except (FileNotFoundError, InputError):
            return None

    def save(self, cell: Cell) -> None:
        """Keep a finished cell; it is there completely or not at all, also after a kill.

        Raises:
            InputError: the folder can no longer be written.
        """
        file = self._file(cell.settings)
        beside = file.with_suffix(f".{os.getpid()}")
        try:
            beside.write_bytes(to_json(cell))
            beside.replace(file)
        except OSError as error:
            raise InputError(
                f"{file}: cannot keep the finished cell ({error.strerror}); pass another --store"
            ) from error

    def remove(self) -> None:
        """Forget everything, when the matrix is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, settings: Settings) -> Path:
        return self.folder / f"{_hash(sorted(settings.items()))}.json"


def _content_hash(target: Target) -> str:
    file = Path(target.place)
    if target.kind == "module":
        file = Path(target.spec.cwd, *target.place.split(".")).with_suffix(".py")
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _hash(identity: object) -> str:
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:16]
