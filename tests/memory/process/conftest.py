"""Programs in fresh interpreters, and readings made up."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import msgspec
import pytest

from pyrometer.memory.process.record import Footprint, HeapState, ProcessMemory

MB = 2**20


@pytest.fixture
def run_python() -> Any:
    """Run a text in a fresh interpreter and return what it printed, as JSON."""

    def run(text: str, **environment: str) -> Any:
        import os

        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)],
            env={**os.environ, **environment},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return msgspec.json.decode(done.stdout)

    return run


@pytest.fixture
def reading() -> Any:
    """A reading of a process of so many MiB, with anything else by name."""

    def read(rss: int = 100, free: int = 0, used: int = 0, **more: Any) -> ProcessMemory:
        return ProcessMemory(
            own=Footprint(pid=1, rss_bytes=rss * MB),
            heap=HeapState(used_bytes=used * MB, free_bytes=free * MB),
            **more,
        )

    return read
