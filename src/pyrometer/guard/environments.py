"""Where each side runs: the tree of its commit, an interpreter, and the path that its code is imported from.

An environment of its own has what its commit asks for; what it lacks, as a rule all that the guard needs, is taken from
the environment of this process, whose interpreter it shares. The guard itself is this installation's on both sides.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyrometer import version
from pyrometer.bench.worker import Worker, boot
from pyrometer.errors import InputError
from pyrometer.guard.gate import Revision
from pyrometer.guard.revisions import git
from pyrometer.guard.settings import GuardSettings

EnvironmentMode = Literal["auto", "own", "shared"]
_LOCKS = (
    "requirements*.txt", "constraints*.txt", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pixi.lock",
    "setup.py", "setup.cfg", "environment*.yml",
)  # fmt: skip
_COMPILED = ("*.c", "*.cc", "*.cpp", "*.cu", "*.cuh", "*.h", "*.hpp", "*.pyx", "*.rs", "CMakeLists.txt")
_PROJECT_TABLES = ("project", "build-system", "dependency-groups")
_NO_DEPENDENCY = ("version", "description", "urls", "authors", "classifiers", "keywords", "readme", "scripts")

# Ahead of all else stands this Pyrometer, for as long as it takes to import it; behind all else what it needs.
_BOOT = (
    "import sys; shim, *more = sys.argv[1:]; sys.argv[1:] = []; sys.path[:] = [p for p in sys.path if p]; "
    "sys.path.insert(0, shim); sys.path.extend(p for p in more if p not in sys.path); "
    "from pyrometer.guard.serving import serve; sys.path.remove(shim); serve()"
)


@dataclass(frozen=True)
class Checkout:
    """One side, ready to be started.

    Attributes:
        name: base or head.
        revision: its commit.
        tree: where that is checked out.
        root: the user's own tree, which nothing may be imported from.
        python: the interpreter.
        paths: that the tree is imported from.
        shim: folder with a link to this Pyrometer.
        probes: what every compile cache begins with, the compiler's findings about the machine; null for nothing.
    """

    name: str
    revision: Revision
    tree: Path
    root: Path
    python: str
    paths: tuple[str, ...]
    shim: Path
    probes: Path | None = None

    def start(self, log: Path, caches: Path, hash_seed: int = 0) -> Worker:
        """A process of this side, with compile caches of its own.

        Strings hash alike in all that have one seed. Pairs have different ones: which names collide in a dictionary is luck,
        and would else be that of every pair.
        """
        caches.mkdir(parents=True, exist_ok=True)
        if self.probes is not None:
            shutil.copytree(self.probes, caches / "inductor", dirs_exist_ok=True)
        environment = {
            "PYTHONPATH": os.pathsep.join([*self.paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TRITON_CACHE_DIR": str(caches / "triton"),
            "PYTHONHASHSEED": str(hash_seed % 2**32),
            "PYROMETER_GUARD_ROOT": str(self.root),
        }
        command = [self.python, "-c", _BOOT, str(self.shim), *_own_path()]
        return Worker(log, command, environment, cwd=self.tree)


def probe_compiler(folder: Path) -> Path:
    """A compile cache with what the compiler finds out about the machine before its first kernel, and nothing of a program.

    Each process of a job would else compile that anew. Where it fails they do.
    """
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", boot("pyrometer.compiler.private.vector_probes:keep_probes")]
    subprocess.run(  # noqa: S603 - our own interpreter
        command, env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder)}, capture_output=True, check=False
    )
    return folder


def _own_path() -> list[str]:
    """Where this process finds what is installed."""
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def link_pyrometer(folder: Path) -> Path:
    """A folder that holds nothing but this Pyrometer."""
    shim = folder / "pyrometer-here"
    shim.mkdir()
    (shim / "pyrometer").symlink_to(Path(version.__file__).parent, target_is_directory=True)
    return shim


def choose_mode(mode: EnvironmentMode, root: Path, base: Revision, head: Revision) -> tuple[bool, list[str]]:
    """Whether both sides share the environment of this process, and what to say of that.

    By default they do while nothing that is installed, nor compiled by an installation, differs between the commits.
    """
    if mode == "own":
        return False, []
    changed = _changed_dependencies(root, base.sha, head.sha)
    if mode == "auto":
        return (not changed), ([f"environments of their own: {changed[0]} differs"] if changed else [])
    told = (
        f"--env shared although {', '.join(changed[:3])} differ: both sides ran with what is installed here"
    )
    return True, [told] if changed else []


def is_installed(file: str) -> bool:
    """Whether an environment is made from a file, so that it has to be made anew where that changes.

    >>> is_installed("requirements-dev.txt"), is_installed("src/kernel.cpp"), is_installed("model.py")
    (True, True, False)
    """
    name = file.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in ("pyproject.toml", *_LOCKS, *_COMPILED))


def _changed_dependencies(root: Path, base: str, head: str) -> list[str]:
    patterns = [f":(glob)**/{name}" for name in (*_LOCKS, *_COMPILED)]
    changed = git(root, "diff", "--name-only", base, head, "--", *patterns).splitlines()
    if _project(root, base) != _project(root, head):
        changed.insert(0, "pyproject.toml")
    return changed


def _project(root: Path, sha: str) -> dict[str, Any]:
    """What `pyproject.toml` says of dependencies and of how to build."""
    if not git(root, "ls-tree", sha, "pyproject.toml"):
        return {}
    try:
        document = tomllib.loads(git(root, "show", f"{sha}:pyproject.toml"))
    except ValueError:
        return {"unreadable": sha}
    found = {name: document.get(name) for name in _PROJECT_TABLES}
    found["project"] = {
        name: value for name, value in (found["project"] or {}).items() if name not in _NO_DEPENDENCY
    }
    return found


def import_paths(tree: Path, settings: GuardSettings) -> tuple[str, ...]:
    """Where a tree is imported from: the folders of the settings, its `src`, and itself."""
    named = [tree / path for path in settings.paths]
    return tuple(str(path) for path in (*named, tree / "src", tree) if path.is_dir())


def build_environment(tree: Path, folder: Path, settings: GuardSettings, side: str, *, shared: bool) -> str:
    """An environment with what the tree asks for, or the one of this process; its interpreter.

    Raises:
        InputError: it cannot be built; names the side and the last line of what the installer said.
    """
    wanted = settings.install or _installed(tree)
    if shared or not wanted:
        return sys.executable
    uv = shutil.which("uv")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if uv is not None:
        _run(side, tree, [uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        _run(side, tree, [uv, "pip", "install", "--quiet", "--python", str(python), *wanted])
    else:
        _run(side, tree, [sys.executable, "-m", "venv", str(folder)])
        _run(
            side,
            tree,
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted],
        )
    return str(python)


def _installed(tree: Path) -> list[str]:
    if (tree / "pyproject.toml").exists():
        tables = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
        if "project" in tables or "build-system" in tables:
            return ["-e", "."]
    if (tree / "setup.py").exists():
        return ["-e", "."]
    return ["-r", "requirements.txt"] if (tree / "requirements.txt").exists() else []


def _run(side: str, tree: Path, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
    clean = {name: value for name, value in (environ or os.environ).items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - the installer, without a shell
        command, cwd=tree, env=clean, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        last = said[-1].strip() if said else f"exit code {done.returncode}"
        raise InputError(
            f"{side}: its environment does not build: {' '.join(command[1:4])} …: {last}; "
            "mend the commit, or pass --env shared to run both sides with what is installed here"
        )
