"""Files beside the database: each is complete under its final name, or not there at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.files import sync
from pyrometer.quantity import Seconds
from pyrometer.store.run import Artifact

_CHUNK_BYTES = 1 << 20


def write_durably(path: Path, content: bytes | Path) -> tuple[int, str]:
    """Write a file beside its place, force it to the disk, then rename it; return its size and SHA-256.

    Raises:
        OSError: it could not be written; nothing is left behind then.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    digest, size_bytes = hashlib.sha256(), 0
    source = BytesIO(content) if isinstance(content, bytes) else content.open("rb")
    try:
        with source, beside.open("wb") as file:
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                size_bytes += file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync(path.parent)
    return size_bytes, digest.hexdigest()


def write_artifacts(root: Path, run_id: str, contents: Mapping[str, bytes | Path]) -> list[Artifact]:
    """Write the files of one run to `root/<run id>/`, which appears when all of them are on the disk.

    Raises:
        InputError: a name that is not a plain file name.
        OSError: they could not be written; nothing is left behind then.
    """
    require_plain_names(contents)
    if not contents:
        return []
    partial, final = root / f".{run_id}.partial", root / run_id
    try:
        partial.mkdir(parents=True)
        written = [
            Artifact(name=name, path=f"{root.name}/{run_id}/{name}", size_bytes=size_bytes, sha256=sha256)
            for name, content in contents.items()
            for size_bytes, sha256 in [write_durably(partial / name, content)]
        ]
        partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(root)
    return written


def require_plain_names(names: Iterable[str]) -> None:
    """Refuse names that would lead out of the folder of a run.

    Raises:
        InputError: a name that is not a plain file name.
    """
    for name in names:
        if name != Path(name).name or name in {"", ".."}:
            raise InputError(f"artifact {name!r}: legal is a plain file name, such as report.html")


def read_file(path: Path) -> Iterator[bytes]:
    """A file, piece by piece.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def artifact_bytes(root: Path, folder: str) -> int:
    """Size of the files in one folder of artifacts; 0 when there is none."""
    return sum(file.stat().st_size for file in (root / folder).glob("*"))


def remove_artifacts(root: Path, folder: str) -> None:
    """Delete one folder of artifacts, if it is there."""
    with suppress(FileNotFoundError):  # another process prunes as well
        shutil.rmtree(root / folder)


def find_orphans(root: Path, run_ids: set[str], *, older_than_s: Seconds) -> list[str]:
    """Folders that belong to no run: their writer was killed before the run was recorded.

    Younger ones are left out, because their writer may be about to record the run.
    """
    names = sorted(folder.name for folder in root.iterdir()) if root.is_dir() else []
    return [name for name in names if name not in run_ids and _age_s(root / name) > older_than_s]


def _age_s(folder: Path) -> Seconds:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0  # its writer has given it the final name in this moment
