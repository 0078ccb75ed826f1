"""Files that are written whole or not at all: beside their place first, then renamed."""

from __future__ import annotations

import contextlib
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
