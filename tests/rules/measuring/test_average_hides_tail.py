"""PYR014: latencies reduced to their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

HEAD = "import statistics\nimport numpy as np\n"

FIRES = {
    "numpy": "print(np.mean(latencies))  # <-\n",
    "statistics": "print(statistics.mean(self.latencies_ms))  # <-\n",
    "by hand": "average = sum(latency) / len(latency)  # <-\n",
}

SILENT = {
    "with quantiles": "print(np.mean(latencies), np.percentile(latencies, 99))\n",
    "with the worst": "print(np.mean(latencies), max(latencies))\n",
    "sorted elsewhere": "latencies.sort()\nprint(np.mean(latencies), latencies[-1])\n",
    "of losses": "print(np.mean(losses))\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_mean(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR014", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR014", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR014")


def test_the_replacement_shows_what_the_mean_hides(run: Callable[..., dict[str, Any]]) -> None:
    latencies = [10.0] * 98 + [500.0] * 2
    assert "500" not in run("PYR014", "Example")["summary"](latencies)
    assert "P50 10.0, P99 500.0" in run("PYR014", "Use instead")["summary"](latencies)
