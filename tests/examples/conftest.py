"""Runs an example as its reader would, and loads its functions without leaving modules behind."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of the examples."""
    return EXAMPLES


@pytest.fixture
def run_example(tmp_path: Path) -> Callable[..., str]:
    """Run `examples/<script> <arguments>` in an empty folder; return what it prints."""

    def run(script: str, *arguments: str) -> str:
        command = [sys.executable, "-W", "error", str(EXAMPLES / script), *arguments]
        # On one thread: several that share a busy core wait for each other and make the time of a test unpredictable.
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run


@pytest.fixture(scope="module")
def load_example() -> Iterator[Callable[[str], ModuleType]]:
    """Import `examples/<script>` with its folder on the path, as Python does for a script."""
    modules = dict(sys.modules)

    def load(script: str) -> ModuleType:
        file = EXAMPLES / script
        sys.path.insert(0, str(file.parent))
        spec = importlib.util.spec_from_file_location(f"example_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(file.parent))
        return module

    yield load
    for name in set(sys.modules) - set(modules):
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(EXAMPLES)):
            del sys.modules[name]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
