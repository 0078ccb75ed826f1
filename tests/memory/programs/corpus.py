"""Small programs as users write them, with and without a memory leak, and what a right answer about each is.

One file per program, in `leaking/` or `clean/`. Each defines `make()`, which builds everything and returns `step`, one
iteration to be called sixty times or more; where threads must end, `close()`; and `EXPECTED`:

- `verdict`: `leak`, `growing cache`, `allocator warm-up` or `stable`;
- `note`: why;
- and for what leaks
  - `holder`: names of which a right answer contains at least one, such as `losses`;
  - `line_contains`: texts of the lines that allocate or keep, of which a right answer names at least one;
  - `graph`: whether an autograd graph is kept alive;
  - `bytes_per_step`: tensor bytes, averaged over many steps; `None` where torch's internals decide it;
  - `freed_by_gc`: whether `gc.collect()`, which the program keeps from running, would free it.

Load this file with `importlib.util.spec_from_file_location`, then:

    for program in corpus.load_all():
        with program.running() as step:
            for _ in range(60):
                step()
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib.util
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CLEAN_VERDICTS = frozenset({"allocator warm-up", "stable"})

_numbers = itertools.count()


class Program:
    """One program of the corpus.

    Attributes:
        name: folder and file name, such as `leaking/loss_history`.
        path: the file.
        source: its text without `EXPECTED`.
        expected: the value of `EXPECTED`, read without running the program.
        leaks: whether its memory grows without bound.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"{path.parent.name}/{path.stem}"
        text = path.read_text()
        self.source, literal = text.split("\n\nEXPECTED = ")
        self.expected: dict[str, Any] = ast.literal_eval(literal)
        self.leaks = self.expected["verdict"] not in CLEAN_VERDICTS

    def __repr__(self) -> str:
        return f"Program({self.name})"

    def make(self) -> Callable[[], object]:
        """`step` of a fresh import, whose module lives as long as the step; threads are not ended."""
        step: Callable[[], object] = _imported(self.path).make()
        return step

    @contextlib.contextmanager
    def running(self) -> Iterator[Callable[[], object]]:
        """`step` of a fresh import that `sys.modules` knows; afterwards threads end, and gc is as it was."""
        collecting = gc.isenabled()
        module = _imported(self.path)
        sys.modules[module.__name__] = module
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Using backward.. with create_graph=True")
                yield module.make()
        finally:
            getattr(module, "close", lambda: None)()
            del sys.modules[module.__name__]
            if collecting:
                gc.enable()

    def accepts(self, verdict: str) -> bool:
        """Whether a verdict is right about the one thing that matters: growth without bound or none."""
        return (verdict in CLEAN_VERDICTS) != self.leaks

    def names_holder(self, text: str) -> bool:
        """Whether a text names what holds the memory; `free` is not named by `freed`."""
        return any(re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", text) for name in self.expected["holder"])

    def names_line(self, line: str) -> bool:
        """Whether a line of the program is one that allocates or keeps the memory."""
        return any(text in line for text in self.expected["line_contains"])


def load_all() -> list[Program]:
    """Every program, by name."""
    return [Program(path) for path in sorted(FOLDER.glob("*/*.py"))]


def _imported(path: Path) -> Any:
    """A module of its own, each time."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_{next(_numbers)}", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
