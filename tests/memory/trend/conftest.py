"""The series of the benchmark, and how often each verdict is given on them."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "leak_series.py"


@pytest.fixture(scope="session")
def series() -> Iterator[Any]:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("leak_series", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["leak_series"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["leak_series"]


@pytest.fixture(scope="session")
def verdicts(series) -> Any:
    """Counts of verdicts over simulations of a row of the benchmark."""

    @functools.cache
    def count(name: str, length: int = 600, simulations: int = 100) -> Counter[str]:
        make = (series.NOT_LEAKING | series.LEAKING)[name]
        rng = np.random.default_rng(1)
        judged = (
            series.judge_series(range(length), series.readings(make, rng, length)) for _ in range(simulations)
        )
        return Counter(verdict.verdict for verdict in judged)

    return count
