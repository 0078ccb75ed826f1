"""Suites of other people's tests, run in this process or in their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch  # before pytester takes its picture of sys.modules, since torch cannot be imported twice

import pyrometer.bench.comparison.compare
import pyrometer.guard.pytest.contracts.graphs
import pyrometer.guard.pytest.contracts.latency
import pyrometer.guard.pytest.contracts.loading
import pyrometer.guard.pytest.contracts.memory
import pyrometer.guard.pytest.contracts.outputs
import pyrometer.guard.pytest.contracts.waits
import pyrometer.guard.pytest.suite
import pyrometer.guard.pytest.turns  # noqa: F401
from pyrometer.guard.pytest.fixture import PyrometerFixture

HEAD = "import pytest, torch\nimport pyrometer as pm\nfrom torch import nn\n\n"
QUIET = [
    "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:cpu_seconds",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # what this process has imported is not rewritten again
]  # fmt: skip

assert torch.__version__


@pytest.fixture
def contract() -> PyrometerFixture:
    """The fixture as a test gets it."""
    return PyrometerFixture()


@pytest.fixture
def run_suite(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Writes a file of tests and runs it, here or with `apart` in a process of its own."""

    def run(text: str, *options: str, apart: bool = False, head: str = HEAD) -> pytest.RunResult:
        pytester.makepyfile(test_suite=head + text)
        start = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
        return start(*QUIET, *options)

    return run
