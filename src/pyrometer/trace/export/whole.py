"""An export is complete or not there, whatever its format."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.files import replacing


@contextlib.contextmanager
def exporting(path: Path) -> Iterator[Path]:
    """The file to write to, which takes the place of `path` when it is complete.

    Raises:
        InputError: it cannot be written.
    """
    try:
        with replacing(path) as beside:
            yield beside
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); name a file in a folder that can be"
        ) from error
