"""Running scripts plainly and under observation."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from pyrometer.workload.script.child import observed_environment
from pyrometer.workload.script.events import Events, read_events
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import install

SCRIPTS = Path(__file__).parent.parent / "scripts"


@dataclass(frozen=True)
class Outcome:
    """All that a run leaves behind for others to see."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    files: dict[str, bytes]


@dataclass(frozen=True)
class Both:
    """A script run twice."""

    plain: Outcome
    observed: Outcome
    log: Path


@pytest.fixture
def run_both(tmp_path: Path) -> Callable[..., Both]:
    """Run a script of `scripts/` with and without observation, each in an empty folder."""

    def run(script: str, *args: str, stdin: bytes = b"", python: str = sys.executable) -> Both:
        plain_environment = {**os.environ, "PYTHONPATH": f"/nowhere{os.pathsep}{SCRIPTS}"}
        log = tmp_path / "events"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", plain_environment["PYTHONPATH"])
            environment = observed_environment(log)
        outcomes = []
        for each in (plain_environment, environment):
            # The same folder for both, so that paths in the output are the same.
            folder = tmp_path / "folder"
            folder.mkdir()
            ended = subprocess.run(
                [python, str(SCRIPTS / script), *args],
                env=each,
                cwd=folder,
                input=stdin,
                capture_output=True,
                timeout=120,
                check=False,
            )
            files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
            outcomes.append(Outcome(ended.returncode, ended.stdout, ended.stderr, files))
            folder.rename(tmp_path / f"folder-{len(outcomes)}")
        return Both(*outcomes, log)

    return run


@pytest.fixture
def observe_here(tmp_path: Path) -> Callable[[str], Events]:
    """Run a script of `scripts/` in this process with torch observed: the same hooks without a second torch import."""

    def run(script: str) -> Events:
        log = EventLog(str(tmp_path / "events"))
        switch, missing = install(torch, Observer(log, torch))
        assert missing == []
        try:
            with redirect_stdout(io.StringIO()), pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path)
                patch.setattr(sys, "argv", [script])
                runpy.run_path(str(SCRIPTS / script), run_name="__main__")
        finally:
            switch(False)
        return read_events(tmp_path / "events")

    return run


def make_log(phases: list[tuple[int, ...]]) -> Events:
    """A log of phases that do not nest: begin kind, object, duration, flags of the begin, flags of the end.

    A gap of 1 ns follows each.
    """
    rows = []
    now = 1_000
    for kind, value, duration, *flags in phases:
        begin, end = (*flags, 0, 0)[:2]
        rows.append((now, kind, begin, value))
        now += duration
        rows.append((now, kind + 1, end, value))
        now += 1
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return Events(0, *columns.T)
