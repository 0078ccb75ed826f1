"""Files that are written whole or not at all, beside their place first, then renamed; their hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to: it takes that place when the block ends well, and is gone when it does not.

    A link keeps leading where it led. What is neither file nor folder, such as `/dev/stdout`, is written to directly and
    never replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "out.txt") as beside:
    ...         _ = beside.write_text("whole")
    ...     [one.name for one in Path(folder).iterdir()]
    ['out.txt']

    Raises:
        OSError: it cannot be written or renamed.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path  # not what it resolves to: a pipe behind it has no path of its own
        return
    place = path.resolve()
    beside = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        yield beside
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or which files a folder holds, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """The hash of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
