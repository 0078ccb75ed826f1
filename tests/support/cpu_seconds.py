"""How much processor time each file of tests took, with the processes that it waited for: unlike durations, the same on a busy machine.

The dearest begin first: one that came last would run on alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BEGAN = pytest.StashKey[float]()
NUM_FILES = 25
DEAREST = [
    "tests/docs/test_task_pages.py",
    "tests/tuning/trials/test_worker.py",
    "tests/serving/test_replicas.py",
    "tests/evidence/test_ranks.py",
    "tests/examples/test_robot_fleet.py",
    "tests/cli/test_bench_modes.py",
    "tests/cli/test_tune.py",
    "tests/guard/test_jobs.py",
    "tests/memory/scripts/test_profile_script.py",
    "tests/scaling/test_scale.py",
    "tests/guard/test_environments.py",
    "tests/guard/test_blaming.py",
]
"""Of more than about half a minute, as runs have told."""
_cpu_s: Counter[str] = Counter()
_num_tests: Counter[str] = Counter()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gone = [name for name in DEAREST if not (config.rootpath / name).exists()]
    if gone:
        raise pytest.UsageError(f"{Path(__file__).name}: no such file is there: {', '.join(gone)}")
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in DEAREST)


def cpu_now_s() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = cpu_now_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: Any = yield
    if report.when == "teardown":
        report.user_properties.append(("cpu_s", cpu_now_s() - item.stash[BEGAN]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        file = report.nodeid.partition("::")[0]
        _cpu_s[file] += dict(report.user_properties).get("cpu_s", 0.0)
        _num_tests[file] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section(f"{sum(_cpu_s.values()):.0f} s of processor time")
    for file, cpu_s in _cpu_s.most_common(NUM_FILES):
        terminalreporter.line(f"{cpu_s:7.1f} s  {_num_tests[file]:4d} tests  {file}")
