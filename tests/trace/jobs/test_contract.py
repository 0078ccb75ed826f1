"""What `pyrometer trace DIR --json` promises of a job at the top of its document."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyrometer.cli.main import main
from pyrometer.report.schema import schema_of

KEYS = {"rank", "compute_ns", "exposed_comm_ns", "wait_ns", "data_ns", "idle_ns"}


@pytest.fixture
def document(capfd: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """The document of some inputs, valid against its schema."""

    def of(*inputs: Path) -> dict[str, Any]:
        assert main(["trace", *map(str, inputs), "--json"]) == 0
        told: dict[str, Any] = json.loads(capfd.readouterr().out)
        jsonschema.validate(told, schema_of("trace"))
        assert all(set(row) == KEYS for row in told["ranks"])
        assert told["findings"] == told["diagnosis"]["findings"]
        return told

    return of


def test_a_folder_of_ranks_gives_the_time_of_each_rank_and_who_is_late(
    document: Any, synthetic_job: Any, tmp_path: Path
) -> None:
    synthetic_job(slow_us={2: 200}, loading_us={2: 300}).write()
    told = document(tmp_path)
    assert [row["rank"] for row in told["ranks"]] == [0, 1, 2, 3]
    late, other = told["ranks"][2], told["ranks"][0]
    assert late["compute_ns"] - other["compute_ns"] == 5 * 200_000
    assert (late["wait_ns"], other["wait_ns"]) == (0, 5 * 500_000)
    assert late["data_ns"] - other["data_ns"] > 4 * 290_000
    assert [straggler["rank"] for straggler in told["stragglers"]] == [2]
    assert [collective["name"] for collective in told["collectives"]] == ["all_reduce"]
    assert told["pipeline"] == []
    assert "PYR607" in {finding["code"] for finding in told["findings"]}


def test_times_of_a_rank_add_up_to_its_span(document: Any, synthetic_job: Any, tmp_path: Path) -> None:
    synthetic_job(loading_us={1: 300}).write()
    told = document(tmp_path)
    for row, beside in zip(told["ranks"], told["evidence"]["job"]["ranks"], strict=True):
        copies = beside["parts"]["exposed_memcpy"] + beside["parts"]["memset"]
        times = row["compute_ns"] + row["exposed_comm_ns"] + row["data_ns"] + row["idle_ns"]
        assert times + copies == beside["span_ns"]


def test_one_rank_alone_cannot_say_that_it_waits(document: Any, synthetic_job: Any) -> None:
    told = document(synthetic_job().write()[0])
    assert [(row["rank"], row["wait_ns"]) for row in told["ranks"]] == [(0, None)]
    assert (told["stragglers"], told["collectives"], told["pipeline"]) == ([], [], [])


def test_two_ranks_of_a_real_job(document: Any, real_traces: Path, tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copy(real_traces / f"sampled_rank{rank}.json.gz", tmp_path / f"rank{rank}.json.gz")
    told = document(tmp_path)
    assert told["stragglers"][0]["rank"] == 1
    assert all(row["compute_ns"] > 0 and row["wait_ns"] is not None for row in told["ranks"])
    assert told["collectives"]


@pytest.mark.parametrize("name", ["v100_ns_5steps", "cpu_only_rank34", "h100_bert_small", "mi210_gpu_only"])
def test_a_real_trace_of_one_rank(document: Any, real_traces: Path, name: str) -> None:
    told = document(real_traces / f"{name}.json.gz")
    parts = told["evidence"]["trace"]["breakdown_ns"]
    (row,) = told["ranks"]
    copies = parts["exposed_memcpy"] + parts["memset"]
    assert sum(row[key] for key in KEYS - {"rank", "wait_ns"}) + copies == sum(parts.values())
    assert row["compute_ns"] > 0
