"""Programs that compile: written to a file, run once under observation, told to the rules."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.compiler.report import CompileReport
from pyrometer.rules.case import Case
from pyrometer.source.module import Module

_numbers = itertools.count()


@dataclass(frozen=True)
class Ran:
    """A program that was run, and what is known of it."""

    path: Path
    source: str
    output: Any
    """What its `run()` returned."""
    report: CompileReport
    evidence: Case

    def line_of(self, text: str) -> int:
        """The number of the line that holds a text."""
        return next(number for number, line in enumerate(self.source.splitlines(), 1) if text in line)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Ran]]:
    """`ran(source)`: a program whose `run()` was observed; the same text is run once per session."""
    known: dict[str, Ran] = {}
    folder = tmp_path_factory.mktemp("compiled")

    def run(source: str) -> Ran:
        text = textwrap.dedent(source).lstrip()
        if text not in known:
            known[text] = _run(text, folder)
        return known[text]

    yield run
    for name in [name for name in sys.modules if name.startswith("rule_program_")]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _nothing_compiled() -> Iterator[None]:
    """Each test starts with nothing compiled, and leaves nothing behind."""
    torch._dynamo.reset()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
    torch._dynamo.reset()


def _run(text: str, folder: Path) -> Ran:
    path = folder / f"rule_program_{next(_numbers)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = program  # torch imports modules by their names
    linecache.checkcache(str(path))
    torch._dynamo.reset()
    torch.manual_seed(0)
    with observe_compile() as seen:
        spec.loader.exec_module(program)
        output = program.run()
    report = seen.report()
    torch._dynamo.reset()
    modules = (Module.parse(str(path), text),)
    return Ran(path, text, output, report, Case(target=str(path), compiled=report, modules=modules))
