"""Only files that can hold what is asked for are imported: all of them together take as long as many tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

WANTED = re.compile(r"(?<!not )\b(?:slow|measuring)\b")
"""Marks of an expression of `-m` that few tests have."""
TRACES = "real_trace"
"""The fixture whose large traces are slow, in files that need not say so."""


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Iterator[None]:
    """Leaves out the doctests of files without any, and the tests of those that do not name a mark that is asked for."""
    collectors: Any = yield
    if not collectors:
        return collectors
    text = file_path.read_text(encoding="utf-8")
    marks = WANTED.findall(parent.config.getoption("-m"))
    named = (
        not marks or any(mark in text for mark in [*marks, TRACES]) or parent.session.isinitpath(file_path)
    )
    return [
        each
        for each in collectors
        if (">>>" in text and not marks if isinstance(each, DoctestModule) else named)
    ]
