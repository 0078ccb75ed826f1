"""Workers of pytest-xdist take turns: a test that measures has the machine to itself, the others run side by side.

Two locks of the operating system, which a worker that dies lets go. Whoever wants to be alone waits at the gate, which
holds up those who come later: many short tests cannot keep it waiting for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


class Turns:
    """The turns of one session.

    Args:
        session: its name, the same in all workers.
        folder: where the lock files are; by default that for temporary files, which the workers of a machine share.
    """

    def __init__(self, session: str, folder: Path | None = None) -> None:
        self._gate, self._room = (
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600) for path in _paths(session, folder)
        )
        self._is_inside = False

    @contextlib.contextmanager
    def beside_others(self) -> Iterator[None]:
        """Run while nobody measures."""
        with _held(self._gate, fcntl.LOCK_EX):
            fcntl.flock(self._room, fcntl.LOCK_SH)
        yield from self._inside()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run while nobody else runs; a worker that is beside others leaves first, and comes back."""
        was_inside = self._is_inside
        if was_inside:
            fcntl.flock(self._room, fcntl.LOCK_UN)
        with _held(self._gate, fcntl.LOCK_EX):
            fcntl.flock(self._room, fcntl.LOCK_EX)
        try:
            yield from self._inside()
        finally:
            if was_inside:
                with _held(self._gate, fcntl.LOCK_EX):
                    fcntl.flock(self._room, fcntl.LOCK_SH)
                self._is_inside = True

    def _inside(self) -> Iterator[None]:
        self._is_inside = True
        try:
            yield
        finally:
            self._is_inside = False
            fcntl.flock(self._room, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._gate)
        os.close(self._room)


def remove_turns(session: str, folder: Path | None = None) -> None:
    """Remove the files of a session that is over."""
    for path in _paths(session, folder):
        path.unlink(missing_ok=True)


def _paths(session: str, folder: Path | None) -> tuple[Path, Path]:
    place = folder or Path(tempfile.gettempdir())
    return place / f"pyrometer-{session}.gate", place / f"pyrometer-{session}.room"


@contextlib.contextmanager
def _held(descriptor: int, kind: int) -> Iterator[None]:
    fcntl.flock(descriptor, kind)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
