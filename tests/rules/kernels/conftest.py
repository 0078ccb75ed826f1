"""What tests of rules about kernels share: a module to put lines into, golden GPU traces, real programs that are seen once."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.source.module import Module
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.rank_report import report_rank
from recorded import case_of_program

A100 = {
    "id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0, "warpSize": 32,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936,
}  # fmt: skip

FORWARD = """\
import math

import torch
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    def forward(self, x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
"""
"""A forward pass; what a test adds stands in its body."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Steps are small, and other tests run beside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def in_forward(body: str) -> str:
    return FORWARD + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


@pytest.fixture
def in_program() -> Callable[[str], str]:
    """A forward pass with these lines as its body; a whole file as it is."""
    return lambda body: body if "import torch" in body else in_forward(body)


@pytest.fixture
def a100(trace_tests: ModuleType, tmp_path: Path) -> Any:
    """An empty trace of an A100."""
    return trace_tests.TraceBuilder(tmp_path, deviceProperties=[A100])


@pytest.fixture
def new_a100(trace_tests: ModuleType, tmp_path: Path) -> Callable[[], Any]:
    """Makes further empty traces of an A100, for tests that need several."""
    return lambda: trace_tests.TraceBuilder(tmp_path, deviceProperties=[A100])


@pytest.fixture
def shapes() -> Callable[..., dict[str, Any]]:
    """The arguments of an operator's call: `shapes([8, 16], [16, 4], kind="c10::Half")`."""

    def arguments(*dims: Any, kind: str = "float") -> dict[str, Any]:
        types = [kind if dim else "Scalar" for dim in dims]
        return {"Input Dims": list(dims), "Input type": types, "Concrete Inputs": ["" for _ in dims]}

    return arguments


@pytest.fixture
def traced() -> Callable[..., Case]:
    """`traced(builder, source="…", program=…)`: evidence of a golden trace, with a file `train.py` if there is source."""

    def look(builder: Any, source: str | None = None, peaks: Any = None, **parts: Any) -> Case:
        report: RankReport = report_rank(builder.read(), peaks=peaks)
        modules = () if source is None else (Module.parse("train.py", source),)
        return Case(target="test", trace=report, modules=modules, **parts)

    return look


@pytest.fixture
def example() -> Callable[[str, str], Case]:
    """`example("tiny_ops", "fixed")`: the recorded trace, program and source of a bottleneck."""
    return lambda name, variant: case_of_program(name, variant, "trace", "program")


@pytest.fixture
def run_both() -> Callable[..., tuple[Any, Any]]:
    """`run_both(text, fixed, "f", x)`: what a function of two texts makes of the same arguments."""

    def run(text: str, fixed: str, name: str, *args: Any) -> tuple[Any, Any]:
        results = []
        for source in (text, fixed):
            space: dict[str, Any] = {}
            exec(compile(textwrap.dedent(source), "snippet.py", "exec"), space)
            torch.manual_seed(0)
            results.append(space[name](*args))
        return results[0], results[1]

    return run
