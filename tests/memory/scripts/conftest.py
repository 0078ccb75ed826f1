"""Following scripts in this process, and running them plainly and followed in one of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrometer.memory.profile import LeakReport, MemoryProfile
from pyrometer.memory.scripts.findings import FollowSettings, ScriptFindings
from pyrometer.memory.scripts.follower import follow
from pyrometer.memory.scripts.profile import ScriptMemory, profile_script
from pyrometer.record import from_json, to_dict
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import install

HEAD = """import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
"""
PARAMETER_BYTES = 4 * (64 * 256 + 256 + 256 * 10 + 10)


@dataclass(frozen=True)
class FollowedHere:
    """What a follower found in this process, and the variables that the code left."""

    found: ScriptFindings
    variables: dict[str, Any]

    @property
    def profile(self) -> MemoryProfile:
        assert self.found.profile is not None
        return self.found.profile

    @property
    def leak(self) -> LeakReport:
        assert self.profile.leak is not None
        return self.profile.leak


@pytest.fixture
def follow_here(tmp_path: Path) -> Callable[..., FollowedHere]:
    """Run code as a script would run, in this process: the same hooks without a second import of torch."""

    def run(code: str, *, leak_steps: int | None = 0, head: str = HEAD) -> FollowedHere:
        settings = FollowSettings(path=str(tmp_path / "memory.json"), name="script.py", leak_steps=leak_steps)
        path = tmp_path / "script.py"
        path.write_text(head + code)
        follower = follow(torch, to_dict(settings))
        observer = Observer(EventLog(str(tmp_path / "events")), torch, follower=follower)
        switch, missing = install(torch, observer)
        assert missing == []
        variables: dict[str, Any] = {"__name__": "script"}
        try:
            exec(compile(path.read_text(), str(path), "exec"), variables)
        finally:
            observer.resolve()
            switch(False)
        return FollowedHere(from_json(ScriptFindings, Path(settings.path).read_bytes()), variables)

    return run


@dataclass(frozen=True)
class Both:
    """A script that has run plainly, and followed."""

    plain: subprocess.CompletedProcess[str]
    output: tuple[str, str]
    memory: ScriptMemory

    @property
    def profile(self) -> MemoryProfile:
        return self.memory.profile


@pytest.fixture
def run_both(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Both]:
    """Run a script of these lines, or at this path, with and without following."""

    def run(script: str | Path, *args: str, leak_steps: int | None = 0, head: str = HEAD) -> Both:
        path = script if isinstance(script, Path) else tmp_path / "script.py"
        if isinstance(script, str):
            path.write_text(head + script)
        argv = [str(path), *args]
        plain = subprocess.run([sys.executable, *argv], capture_output=True, text=True, check=False)
        capfd.readouterr()
        memory = profile_script(argv, leak_steps=leak_steps)
        return Both(plain, capfd.readouterr(), memory)

    return run
