"""Benchmarks as code: functions `perf_*` of files `perf_*.py`, and targets of `[tool.pyrometer.guard]`.

A function that returns a workload, a `(model, inputs)` pair or a module with `example_inputs` sets one up; one that returns
a callable has that timed; any other is timed itself.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from pyrometer.bench.matrix.axes import SPELLED, parse_axes
from pyrometer.errors import InputError, PyrometerError
from pyrometer.guard.pairing import body_of
from pyrometer.guard.parameters import Cell, cells_of, label_of, split
from pyrometer.workload.call import Call
from pyrometer.workload.failure import user_code
from pyrometer.workload.importing import import_root
from pyrometer.workload.loading import load_workload, workload_from
from pyrometer.workload.target import parse_target
from pyrometer.workload.workload import Workload

FUNCTIONS = "perf_"


class Itself(functools.partial[Any]):
    """A benchmark function that is itself timed; setting it up was its first call."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of one side.

    Attributes:
        name: as reports name it.
        make: sets it up; what it takes is not timed.
        body: what it does, whatever it is called; null where that is not known.
    """

    name: str
    make: Callable[[], Workload]
    body: str | None = None


@dataclass(frozen=True)
class Discovered:
    """What a side has."""

    benchmarks: list[Benchmark]
    failures: list[tuple[str, str]]
    """Files and targets that could not be read, with the reason."""


def discover(root: Path, files: Sequence[str], targets: Sequence[str], matrix: Sequence[str]) -> Discovered:
    """Import the files of a tree and list its benchmarks, those of files in their order first.

    Args:
        root: of the tree, which is the working directory.
        files: that hold benchmarks, relative to it.
        targets: workloads beside them, as the command line takes them.
        matrix: axes over which those are varied, such as `mode=eager,default`.
    """
    found: list[Benchmark] = []
    failures: list[tuple[str, str]] = []
    for file in files:
        try:
            found += list(_in_file(file, _imported(root / file)))
        except PyrometerError as error:
            failures.append((file, str(error)))
    settings = parse_axes(matrix).cells() if matrix else [{}]
    for target in targets:
        for cell in settings:
            shown = {SPELLED[name]: value for name, value in cell.items()}
            name = f"{target}[{label_of(shown)}]" if cell else target
            found.append(Benchmark(name, functools.partial(_of_target, target, root, cell)))
    return Discovered(found, failures)


def _imported(path: Path) -> ModuleType:
    """Import a file as pytest does: by its name, with its directory, or that above its package, on the path of imports."""
    root = import_root(path)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    with user_code(f"{path.name}: importing it"):
        module = importlib.import_module(name)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise InputError(f"{path.name}: there is another {name} at {module.__file__}; rename one of them")
    return module


def _in_file(file: str, module: ModuleType) -> Iterator[Benchmark]:
    for name, function in vars(module).items():
        if not name.startswith(FUNCTIONS) or not inspect.isfunction(function):
            continue
        if function.__module__ != module.__name__:
            continue  # imported from elsewhere, where it is listed
        for cell in cells_of(function):
            _require_complete(file, function, cell)
            label = f"[{label_of(cell)}]" if cell else ""
            full = f"{file}::{name}{label}"
            yield Benchmark(
                full, functools.partial(_of_function, full, function, cell), body_of(function, label)
            )


def _require_complete(file: str, function: Callable[..., Any], cell: Cell) -> None:
    parameters = inspect.signature(function).parameters.values()
    optional = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    missing = [
        p.name
        for p in parameters
        if p.default is inspect.Parameter.empty and p.kind not in optional and p.name not in cell
    ]
    if missing:
        raise InputError(
            f"{file}::{function.__name__}: nothing says what {', '.join(missing)} is; "
            f"give it values: @pm.parametrize({missing[0]}=[…])"
        )


def _of_target(target: str, root: Path, cell: Cell) -> Workload:
    work = load_workload(parse_target(target, cwd=root))
    return work.variant(**cell) if cell else work


def _of_function(name: str, function: Callable[..., Any], cell: Cell) -> Workload:
    own, settings = split(function, cell)
    with user_code(name):
        made = function(**own)
    if _is_workload(made):
        work = workload_from(name, made)
    else:
        work = Call(made if callable(made) else Itself(function, **own), name=name)
    return work.variant(**settings) if settings else work


def _is_workload(made: Any) -> bool:
    if isinstance(made, nn.Module):
        return hasattr(made, "example_inputs")
    is_pair = isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module)
    return isinstance(made, Workload) or is_pair


def benchmark_files(paths: Sequence[str]) -> list[str]:
    """Of the files of a tree those that hold benchmarks.

    >>> benchmark_files(["src/perf_model.py", "perf.py", "tests/test_perf.py"])
    ['src/perf_model.py']
    """
    return sorted(
        path
        for path in paths
        if os.path.basename(path).startswith(FUNCTIONS) and path.endswith(".py")  # noqa: PTH119 - paths of git
    )
