"""Real git repositories, small and made anew for each test."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 128)
        self.b = nn.Linear(128, 10)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
"""

PERF = """
import torch
from model import Net


def perf_forward():
    return Net(), torch.randn(16, 64)
"""


class Repository:
    """A repository and what tests do to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "test")
        self.git("config", "user.email", "test@localhost")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def wheel(self, module: str, version: str, text: str) -> str:
        """A package of one module, which an environment installs without a network; its path, as pip takes it."""
        info, place = f"{module}-{version}.dist-info", f"wheels/{module}-{version}-py3-none-any.whl"
        (self.root / "wheels").mkdir(exist_ok=True)
        with zipfile.ZipFile(self.root / place, "w") as archive:
            archive.writestr(f"{module}.py", text)
            archive.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n"
            )
            archive.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{info}/RECORD", "")
        return f"./{place}"

    def commit(self, files: Mapping[str, str], message: str = "change") -> str:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def state(self) -> tuple[str, ...]:
        """What the guard must leave as it was."""
        asked = ("status --porcelain", "branch --list", "worktree list", "stash list", "rev-parse HEAD")
        return tuple(self.git(*one.split()) for one in asked)


@pytest.fixture
def new_repository(tmp_path: Path) -> Callable[[str], Repository]:
    def make(name: str) -> Repository:
        (tmp_path / name).mkdir()
        return Repository(tmp_path / name)

    return make


@pytest.fixture
def repo(new_repository: Callable[[str], Repository]) -> Repository:
    """With a first commit that has one benchmark."""
    made = new_repository("repo")
    made.commit({"model.py": MODEL, "perf_model.py": PERF}, "first")
    return made
