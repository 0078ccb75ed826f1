"""The command line in this process, for what is the same in one of its own: that saves each test the import of torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyrometer.cli.main import main


@dataclass(frozen=True)
class Ended:
    """What a command left, named as in `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run `pyrometer` with such arguments in a folder."""

    def ended(folder: Path, *arguments: str) -> Ended:
        monkeypatch.chdir(folder)
        capfd.readouterr()
        code = main(list(arguments))
        return Ended(code, *capfd.readouterr())

    return ended
