"""Doctests are looked for in files that have some, not by importing every module of the house in every process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    collectors: Any = yield
    return [
        each for each in collectors if not isinstance(each, DoctestModule) or b">>>" in file_path.read_bytes()
    ]
