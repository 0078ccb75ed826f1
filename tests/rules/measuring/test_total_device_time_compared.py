"""PYR009: operators ranked by total time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pyrometer.rules.match import Match
from pyrometer.source.edit import apply_edits

HEAD = "import torch\n"

FIRES = {
    "a table": 'print(prof.key_averages().table(sort_by="cuda_time_total"))  # <-\n',
    "by place": 'prof.key_averages(group_by_input_shape=True).table("cpu_time_total", row_limit=5)  # <-\n',
    "sorted": "sorted(prof.key_averages(), key=lambda event: event.device_time_total)  # <-\n",
    "sorted by its name": """
averages = prof.key_averages()
worst = max(averages, key=lambda event: -event.cpu_time_total)  # <-
""",
}

SILENT = {
    "self time": 'print(prof.key_averages().table(sort_by="self_cuda_time_total"))\n',
    "self time in a key": "sorted(prof.key_averages(), key=lambda event: event.self_device_time_total)\n",
    "not sorted": "print(prof.key_averages().table(row_limit=10))\n",
    "other tables": 'print(frame.table(sort_by="name"))\n',
    "single events": "sorted(prof.events(), key=lambda event: event.cpu_time_total)\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_key(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR009", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR009", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR009")


def test_the_edit_makes_the_replacement(
    documented: Callable[..., str], matches: Callable[..., list[Match]]
) -> None:
    (match,) = matches("PYR009", documented("PYR009", "Example"))
    assert match.fix is not None
    assert match.fix.fix_class == "semantic"
    assert apply_edits(documented("PYR009", "Example"), match.fix.edits) == documented(
        "PYR009", "Use instead"
    )


def test_totals_count_nested_time_again_and_self_times_do_not() -> None:
    with torch.profiler.profile() as prof:
        torch.nn.Linear(8, 8)(torch.randn(2, 8))
    averages = prof.key_averages()
    linear = next(average for average in averages if average.key == "aten::linear")
    nested = next(average for average in averages if average.key == "aten::addmm")
    assert linear.cpu_time_total >= nested.cpu_time_total
    assert linear.self_cpu_time_total < linear.cpu_time_total
    whole = sum(average.self_cpu_time_total for average in averages)
    assert sum(average.cpu_time_total for average in averages) > whole
    assert "Self CPU" in averages.table(sort_by="self_cpu_time_total")
