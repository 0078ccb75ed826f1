"""A script under observation behaves to the byte as without."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest

from pyrometer.workload.script.events import read_events
from pyrometer.workload.script.startup._pyrometer_inside import kinds

from .conftest import Both

LOG_PREFIX = re.compile(rb"(?<=[VIWE])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ")
WITHOUT_TORCH = [
    ("exits.py", "code", "0"),
    ("exits.py", "code", "3"),
    ("exits.py", "text"),
    ("exits.py", "none"),
    ("exits.py", "bool"),
    ("exits.py", "os"),
    ("exits.py", "interrupt"),
    ("exits.py", "signal", str(int(signal.SIGKILL))),
    ("exits.py", "signal", str(int(signal.SIGTERM))),
    ("exits.py", "signal", str(int(signal.SIGINT))),
    ("exits.py", "abort"),
    ("raises.py",),
    ("hooked.py",),
    ("identity.py", "--epochs", "1", "with space", ""),
    ("streams.py",),
    ("sibling.py",),
    ("forks.py",),
    ("processes.py", "fork", "spawn", "forkserver"),
    ("grandchild.py",),
    ("threads.py",),
    ("warns.py",),
    ("closes.py",),
    ("replaces.py",),
    ("silent.py",),
    ("wrong_syntax.py",),
]
WITH_TORCH = [
    pytest.param(("train.py", "--epochs", "2"), marks=pytest.mark.exhaustive),
    pytest.param(("train.py", "--epochs", "1", "--workers", "2"), marks=pytest.mark.exhaustive),
    pytest.param(("torch_failures.py",), marks=pytest.mark.exhaustive),
    pytest.param(("torch_failures.py", "workers"), marks=pytest.mark.exhaustive),
    ("many_things.py",),
    pytest.param(("compiled.py", "aot_eager"), marks=pytest.mark.exhaustive),
]


def assert_same(both: Both) -> None:
    assert both.observed.stdout == both.plain.stdout
    # torch's own log lines begin with the time and the process id.
    assert LOG_PREFIX.sub(b"", both.observed.stderr) == LOG_PREFIX.sub(b"", both.plain.stderr)
    assert both.observed.exit_code == both.plain.exit_code
    assert both.observed.files == both.plain.files
    # And it was observed indeed.
    assert both.log.exists()
    assert not both.log.with_name("events.failure").exists()


@pytest.mark.parametrize("command", WITHOUT_TORCH, ids=" ".join)
def test_behaves_as_without_us(command: tuple[str, ...], run_both: Callable[..., Both]) -> None:
    assert_same(run_both(*command, stdin=b"line\n\x00\xff"))


@pytest.mark.slow
@pytest.mark.parametrize("command", WITH_TORCH, ids=" ".join)
def test_torch_behaves_as_without_us(command: tuple[str, ...], run_both: Callable[..., Both]) -> None:
    both = run_both(*command)
    assert_same(both)
    assert len(read_events(both.log).of(kinds.FORWARD_BEGIN).kind) > 0
