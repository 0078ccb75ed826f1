"""The page about contracts says what is: its suite runs, its failure looks so, its options and contracts are all there are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from pyrometer.guard.pytest.fixture import PyrometerFixture
from pyrometer.guard.pytest.plugin import pytest_addoption

PAGE = (Path(__file__).parents[3] / "docs" / "pytest.md").read_text(encoding="utf-8")
SUITE = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
SHOWN = re.search(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.measuring
def test_the_suite_of_the_page_runs_as_it_says(pytester):
    pytester.makepyfile(test_model=SUITE)
    done = pytester.runpytest_subprocess("-p", "no:randomly")
    done.assert_outcomes(passed=5, failed=1)
    assert SHOWN is not None
    done.stdout.fnmatch_lines([line.replace("[", "[[]") for line in SHOWN[1].splitlines() if line])


def test_every_contract_is_listed_with_its_arguments():
    listed = dict(re.findall(r"^\| `(\w+)\((.+?)\)` \|", PAGE, re.MULTILINE))
    contracts = {
        name: method
        for name, method in vars(PyrometerFixture).items()
        if not name.startswith("_") and name not in {"measure", "compare"} and inspect.isfunction(method)
    }
    assert set(listed) == set(contracts)
    for name, method in contracts.items():
        assert re.findall(r"(\w+)(?:=|,|$)", listed[name].replace("=…", "").replace('"5s"', "")) != []
        for parameter in list(inspect.signature(method).parameters)[1:]:
            assert parameter in listed[name], (name, parameter)


def test_every_option_is_listed():
    options = re.findall(r'"(--?[\w-]+|pyrometer_\w+)",\n?', inspect.getsource(pytest_addoption))
    assert len(options) == 3
    for name in options:
        assert f"| `{name}` |" in PAGE
