"""How much processor time each file of tests took, with the processes that it waited for: unlike durations, the same on a busy machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

BEGAN = pytest.StashKey[float]()
NUM_FILES = 25
_cpu_s: Counter[str] = Counter()
_num_tests: Counter[str] = Counter()


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
